// SPDX-License-Identifier: Apache-2.0
// Flow control for records: bounds the bytes of records held in memory. Room is reserved before any
// lock is taken.
//
// Waiters get room in FIFO order: while one waits, no other caller gets any, however little. So a
// long record finds room once those before it are written, and one longer than the bound when
// nothing else is held.
//
// A caller that cannot wait retries reserve(). The longest refused record has a claim: shorter
// records may pass it until they have come to the bound, and then none does until the claim is
// served, or expires because the caller does not retry.
//
// Thread: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>

#include "base/chain.hpp"
#include "espalier/error.hpp"

namespace espalier::log {

/// Reserved room, or an appended record; its bytes follow it.
struct QueuedRecord {
  QueuedRecord* next;
  std::uint64_t sequence;
  std::uint64_t bytes;

  [[nodiscard]] std::span<std::byte> payload() {
    return {reinterpret_cast<std::byte*>(this + 1), bytes};
  }
  [[nodiscard]] static QueuedRecord* of(std::span<std::byte> payload) {
    return reinterpret_cast<QueuedRecord*>(payload.data()) - 1;
  }
};

/// Records, the oldest first.
using RecordList = base::Chain<QueuedRecord, &QueuedRecord::next>;

/// Moves all records of a list to the end of another. Cost: a few stores for each.
inline void move_records(RecordList& from, RecordList& to) {
  if (to.empty()) std::swap(from, to);
  while (!from.empty()) to.push(from.pop());
}

/// A waiter for room.
class RoomWaiter {
 public:
  virtual ~RoomWaiter() = default;
  /// Completes the waiter, with room or with the error for which there is none. Called once, with a
  /// lock held: it should be short, and must not call the log.
  virtual void complete(Result<std::span<std::byte>> room) noexcept = 0;

 private:
  friend class RecordRoom;
  std::size_t bytes_ = 0;
  RoomWaiter* next_ = nullptr;
};

class RecordRoom {
 public:
  /// A refused caller retries within this time once there is room, or its claim expires.
  static constexpr std::uint64_t kClaimNs = 20'000'000;

  /// Bounds: bytes of records held at a time, and bytes of each record.
  RecordRoom(std::size_t held_bytes_max, std::size_t record_bytes_max,
             std::uint64_t claim_ns = kClaimNs)
      : held_bytes_max_(held_bytes_max), record_bytes_max_(record_bytes_max), claim_ns_(claim_ns) {}
  RecordRoom(const RecordRoom&) = delete;
  RecordRoom& operator=(const RecordRoom&) = delete;
  ~RecordRoom();

  /// A further bound on the length of each record. Requires: no other thread uses the room yet.
  void bound_records(std::size_t bytes_max) {
    record_bytes_max_ = std::min(record_bytes_max_, bytes_max);
  }

  /// Reserves room for one, aligned to 8. Errors: value_too_long, busy (no room, earlier waiters,
  /// or the claim of a longer record), those of memory that runs out, and of refuse().
  [[nodiscard]] Result<std::span<std::byte>> reserve(std::size_t bytes) noexcept;
  /// Completes `waiter` in its turn: inline, or on the thread that makes room.
  void wait(RoomWaiter& waiter, std::size_t bytes) noexcept;
  /// Cancels a waiter. Returns whether it was still waiting; otherwise it has been completed.
  bool cancel(RoomWaiter& waiter) noexcept;
  /// Releases room, or a written record.
  void release(QueuedRecord* record) noexcept;
  /// Releases all records of a list and empties it.
  void release_all(RecordList& records) noexcept;

  /// While paused, gives no room.
  void pause(bool paused) noexcept;
  [[nodiscard]] bool is_paused() const { return paused_; }
  /// From now on fails all reservations with this error.
  void refuse(Error error) noexcept;

  /// Bytes of records and of reserved room.
  [[nodiscard]] std::size_t held_bytes() const { return held_bytes_.load(); }

 private:
  Result<std::span<std::byte>> give(std::size_t bytes) noexcept;
  Result<std::span<std::byte>> give_beside_claim(std::size_t bytes) noexcept;
  void claim(std::size_t bytes) noexcept;
  [[nodiscard]] bool is_abandoned() noexcept;
  [[nodiscard]] bool has_room(std::size_t held, std::size_t whole) const {
    return held == 0 || held + whole <= held_bytes_max_;  // a longer one is admitted alone
  }
  void give_in_turn() noexcept;

  const std::size_t held_bytes_max_;
  std::size_t record_bytes_max_;
  const std::uint64_t claim_ns_;
  std::atomic<std::size_t> held_bytes_ = 0;
  std::atomic<Error> refused_ = Error{};
  std::atomic<bool> paused_ = false;

  std::mutex mutex_;
  base::Chain<RoomWaiter, &RoomWaiter::next_> waiters_;
  std::atomic<std::size_t> waiting_ = 0;  // number of waiters; written with the lock held
  std::atomic<std::size_t> claimed_ = 0;  // length of the claim or 0; written with the lock held
  std::size_t passed_ = 0;                // bytes of shorter records since
  std::uint64_t unclaimed_since_ns_ = 0;  // when room for the claim appeared, or 0
};

}  // namespace espalier::log
