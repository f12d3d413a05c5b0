// SPDX-License-Identifier: Apache-2.0
// Gets of one reader that go the usual way, many at a time and in stages, so that what each stage
// looks at has been asked for by the stage before: what is remembered of the way, by prefetches;
// leaves, by one doorbell for the whole group.
//
//   queue -> keys -> leaf -> where it is -> what is remembered of its head
//         -> [ map header | heads, chunks, logs | headers once more ] -> answers
//            one doorbell, whose READs keep their order
//         -> [ values out of line | their headers once more ] -> answers
//            a second one, where there are such
//
// The usual way: all of it is remembered, the leaf is where it is said to be and answers, and its
// value is no longer than kValueMost. Where key prefixes tie, as with keys that begin alike,
// separators that are remembered decide on the way. A leaf that has the key then covers it; that it
// has not only its fences can tell, which come with the leaf while some keys are missing, and else
// not. Whatever else there is goes to the walker, which knows all of it, and
// begins anew; so a group needs no turns back.
//
// Why its answers may be believed: the lease was believed when the group began; then the READ of
// the header was posted, before all of the leaves; each leaf was asked fresh, by its own head, and
// its buffer's header read again behind its last byte, by a READ that succeeds only while the key
// is good; and then the lease was still the same, and believed (DESIGN §2.1 rules 1, 2 and 4).
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
  /// Gets of one doorbell, at most.
  static constexpr std::uint32_t kMost = 32;
  /// Bytes of a value out of line that a group brings, at most.
  static constexpr std::uint32_t kValueMost = 8192;

  /// Both outlive it. `most`: gets in flight at a time. Requires: the reader remembers nodes, and
  /// its READs keep their order.
  GetGroup(ReaderState& state, const tree::MapView& view, std::uint32_t most);

  /// Queues gets. Errors: std::bad_alloc.
  void submit(std::span<const Request> gets, Handler& handler);
  /// Gets that it answered, so far.
  [[nodiscard]] std::uint64_t answered() const { return answered_; }
  [[nodiscard]] std::size_t pending() const { return queue_.size() - taken_ + begun_.size(); }

  /// Takes what has come, and begins the next group. Each request that goes another way is handed
  /// to `walk`, which neither fails nor calls back.
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
    const std::byte* kept = nullptr;  // of the leaf's head
    std::uint64_t lock = 0;           // as it was when that was kept
    bool misled = false;              // by what is remembered, to a leaf of other keys
    tree::PointBytes brought;
    wire::ValueRef value{};     // out of line: still to come; none: it is not
    std::uint64_t version = 0;  // of that
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
  /// Keeps those of the group that `stays` says of, and gives up the others.
  template <class Stays>
  void sift(const Stays& stays);

  ReaderState& state_;
  const tree::MapView& view_;
  std::vector<Queued> queue_;
  std::size_t taken_ = 0;  // of the queue
  std::vector<Get> gets_;
  std::vector<std::uint32_t> begun_;  // of gets_, those that are in the group
  std::vector<tree::WalkRequest> others_;
  std::unique_ptr<std::uint64_t[]> images_;
  std::unique_ptr<std::uint64_t[]> values_;  // null: none was wanted yet
  bool values_come_ = false;                 // they are what the last doorbell asked for
  // So many gets more bring fences that tie with their keys, for a key was missing not long ago.
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
