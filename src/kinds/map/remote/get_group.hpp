// SPDX-License-Identifier: Apache-2.0
// Gets of one reader in the usual case, in groups and stages, so that each stage prefetches what
// the next one reads: cached ways by prefetch instructions, leaves by one doorbell for the whole
// group.
//
//   queue -> keys -> leaf -> place of the leaf -> cached head of the leaf
//         -> [ map header | heads, chunks, logs | headers once more ] -> answers
//            one doorbell, whose READs keep their order
//         -> [ out-of-line values | their headers once more ] -> answers
//            a second doorbell, if there are such values
//
// The usual case: the whole way is cached, the leaf is at its cached place and answers, and the
// value is no longer than kValueMost. Where key prefixes tie, as with keys that share a prefix,
// cached separators decide on the way. A leaf that has the key covers it; that it lacks the key
// only its fences prove, which are read with the leaf while misses are recent. Every other case
// goes to the walker, which starts over; so a group never backtracks.
//
// Why its answers are valid: the lease was believed when the group began; then the READ of the
// header was posted, before all READs of leaves; each leaf was validated by its own head as read,
// and its buffer's header was read again behind its last byte, by a READ that succeeds only while
// the region key is valid; afterwards the lease was still the same, and believed (DESIGN §2.1 rules
// 1, 2 and 4).
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/task.hpp"
#include "kinds/map/remote/one_sided_access.hpp"
#include "kinds/map/walk/cached_way.hpp"
#include "kinds/map/walk/walk_request.hpp"

namespace espalier::place {

class GetGroup {
 public:
  /// Maximum gets per doorbell.
  static constexpr std::uint32_t kMost = 32;
  /// Maximum bytes of an out-of-line value that a group reads.
  static constexpr std::uint32_t kValueMost = 8192;

  /// Both outlive it. `most`: gets in flight at a time. Requires: the reader caches nodes, and its
  /// READs keep their order.
  GetGroup(ReaderState& state, const tree::MapView& view, std::uint32_t most);

  /// Queues gets. Errors: std::bad_alloc.
  void submit(std::span<const Request> gets, Handler& handler);
  /// Gets answered so far.
  [[nodiscard]] std::uint64_t answered() const { return answered_; }
  [[nodiscard]] std::size_t pending() const { return queue_.size() - taken_ + begun_.size(); }

  /// Takes what has arrived, and begins the next group. Passes each request that is not the usual
  /// case to `walk`, which neither fails nor calls back.
  template <class Walk>
  void poll(const Walk& walk) {
    if (begun_.empty()) begin();
    if (!begun_.empty()) end();
    for (const tree::WalkRequest& other : others_) walk(other);
    others_.clear();
  }

 private:
  struct Get {
    const Request* request = nullptr;
    Handler* handler = nullptr;
    tree::Cursor cursor;
    MapCache::GroupAbove above;
    wire::Lid lid = 0;
    wire::Ref ref{};
    const std::byte* kept = nullptr;  // the cached head of the leaf
    std::uint64_t lock = 0;           // the lock word when the head was cached
    bool misled = false;              // the cache led to a leaf that does not cover the key
    tree::PointBytes brought;
    wire::ValueRef value{};     // out-of-line value still to be read; none: inline
    std::uint64_t version = 0;  // of that value
    std::byte* image = nullptr;
    alignas(8) std::byte proof[sizeof(wire::BufferHeader)];
  };
  struct Queued {
    const Request* request;
    Handler* handler;
  };

  void begin();
  void end();
  void take_queued();
  void find_leaves();
  void find_heads();
  void want_leaves();
  void want_leaf(Get& get, const tree::NodeView& head);
  [[nodiscard]] bool want_values();
  void send();
  [[nodiscard]] bool take_version();
  [[nodiscard]] bool answer(Get& get);
  [[nodiscard]] bool answer_value(Get& get);
  void deliver(Get& get, Completion& answer);
  [[nodiscard]] std::byte* value_room(const Get& get) const;
  void give_up(const Get& get) {
    others_.push_back({get.request, get.handler, nullptr, {}, {}, get.misled});
  }
  /// Keeps the gets for which `stays` holds, and passes the others to the walker.
  template <class Stays>
  void sift(const Stays& stays);

  ReaderState& state_;
  const tree::MapView& view_;
  std::vector<Queued> queue_;
  std::size_t taken_ = 0;  // begin of the queue's remaining gets
  std::vector<Get> gets_;
  std::vector<std::uint32_t> begun_;  // indexes in gets_ of the group's gets
  std::vector<tree::WalkRequest> others_;
  std::unique_ptr<std::uint64_t[]> images_;
  std::unique_ptr<std::uint64_t[]> values_;  // null: no value read yet
  bool values_come_ = false;                 // the last doorbell requested values
  // Number of further gets that read fences which tie with their keys, after a recent miss.
  std::uint32_t fences_come_ = 0;
  alignas(8) std::byte header_[tree::kMapHeaderHead];
  std::uint64_t answered_ = 0;
  std::uint64_t read_version_ = 0;
  std::uint64_t term_ = 0;
  std::uint32_t tick_ = 0;
  base::ReadyQueue ready_{1};
  LaneReads reads_;
};

}  // namespace espalier::place
