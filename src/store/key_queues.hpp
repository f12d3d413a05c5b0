// SPDX-License-Identifier: Apache-2.0
// The order in which transactions of a store run: of those with a key in common, the one that
// arrived first (docs/design/transactions.md). A transaction enters the queues of all its keys
// under one lock, so the order is the same in each queue, and no two wait for each other.
//
//   try_alone   no other is there: it runs without queues; all that arrive meanwhile wait for it
//   enter       behind all that are there
//
// Invariants
// - A place is first, and may run, if and only if no earlier place has a key of it, and none that
//   arrived before runs alone.
// - One runs alone only while there are no places that arrived before it.
//
// Keys count by a hash: two that share one wait for each other without need.
//
// Thread: any.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "store/store_parts.hpp"

namespace espalier::store {

struct ObjectSteps;

class KeyQueues final : public StorePart {
 public:
  /// Places of one client, so that another's transaction waits for no more of it.
  static constexpr std::uint32_t kPlacesOfClientMax = 16;
  /// A client without such a bound: a thread of this process, which waits for its own.
  static constexpr std::uint64_t kNoClient = 0;

  class Place;

 private:
  struct Key {
    std::uint64_t hash = 0;
    Place* owner = nullptr;
    Key* before = nullptr;
    Key* behind = nullptr;
  };

 public:
  /// A transaction's places in the queues of its keys. It leaves them when it ends.
  class Place {
   public:
    Place() = default;
    ~Place() { leave(); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    /// Whether it may run.
    [[nodiscard]] bool is_first() const { return ahead_.load(std::memory_order_acquire) == 0; }
    /// The next one of each key may run.
    void leave() noexcept {
      if (queues_ != nullptr) std::exchange(queues_, nullptr)->remove(*this);
    }

   private:
    friend class KeyQueues;
    KeyQueues* queues_ = nullptr;  // null: it is in none
    std::vector<Key> keys_;        // linked in the queues while it is in them
    std::atomic<std::uint32_t> ahead_{
        0};  // keys with an earlier place, and 1 for one that is alone
    std::uint64_t client_ = kNoClient;
    bool waits_for_alone_ = false;
    Place* next_ = nullptr;  // of those that wait for the one that is alone
  };

  /// It runs alone until this ends.
  class Alone {
   public:
    Alone(Alone&& other) noexcept : queues_(std::exchange(other.queues_, nullptr)) {}
    Alone& operator=(Alone&& other) noexcept {
      std::swap(queues_, other.queues_);
      return *this;
    }
    ~Alone() {
      if (queues_ != nullptr) queues_->end_alone();
    }

   private:
    friend class KeyQueues;
    explicit Alone(KeyQueues& queues) : queues_(&queues) {}
    KeyQueues* queues_;
  };

  /// Nothing: others are there. Cost: one atomic operation, and one at its end.
  [[nodiscard]] std::optional<Alone> try_alone() noexcept;
  /// False: this client has as many places as it may, and the place is in no queue. Errors:
  /// std::bad_alloc. Requires: the place is in none. Cost: a lock; by its keys.
  [[nodiscard]] bool enter(Place& place, std::span<const ObjectSteps> objects,
                           std::uint64_t client = kNoClient);
  /// Blocks until it is first.
  void await(const Place& place);

 private:
  static constexpr std::size_t kBuckets = 1024;  // powers of two
  static constexpr std::size_t kShares = 1024;
  struct Bucket {
    Key* first = nullptr;
    Key* last = nullptr;
  };

  void end_alone() noexcept;
  void remove(Place& place) noexcept;
  // Requires, of all: the mutex.
  [[nodiscard]] Bucket& bucket_of(const Key& key) { return buckets_[key.hash % kBuckets]; }
  [[nodiscard]] std::uint32_t& share_of(std::uint64_t client) { return shares_[client % kShares]; }
  void add(Place& place, std::uint64_t client) noexcept;
  void put_last(Key& key) noexcept;
  void take_out(Key& key) noexcept;
  void release_those_behind_alone() noexcept;
  void step_ahead(Place& place) noexcept;

  std::atomic<std::uint32_t> state_{0};  // kIsAlone, kHasPlaces; the latter changes under the mutex
  std::mutex mutex_;                     // guards all below
  std::condition_variable changed_;
  std::uint32_t blocked_threads_ = 0;
  std::uint32_t places_ = 0;
  Place* behind_alone_ = nullptr;
  std::array<Bucket, kBuckets> buckets_{};
  // Places of clients, by their hash: two that share one share the bound.
  std::array<std::uint32_t, kShares> shares_{};
};

}  // namespace espalier::store
