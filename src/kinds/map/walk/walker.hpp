// SPDX-License-Identifier: Apache-2.0
// Runs many walks concurrently on one core: the walk, written once over an Access, and the loop
// that resumes walks whose bytes have arrived (DESIGN idea 2).
//
// One coroutine serves all operations: it takes a request, descends to the leaf that may answer,
// performs the operation there, and may continue at the next leaf. It enters at a hint or at the
// root; every node on the way is checked for whether it may answer (next_step.hpp), and names the
// next node if not.
//
// A Place is where a walker runs: what it reads (a MapView), how bytes arrive (an Access), how long
// they stay valid (a ReadGuard), and, beside the memory, how to write.
//
// Thread: a walker belongs to one thread at a time.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kinds/map/walk/access.hpp"
#include "kinds/map/walk/ahead_access.hpp"
#include "kinds/map/walk/cached_way.hpp"
#include "kinds/map/walk/next_step.hpp"
#include "kinds/map/walk/read_guard.hpp"
#include "kinds/map/walk/request_queue.hpp"

namespace espalier::tree {

/// Outcome of an attempt to write at a leaf.
enum class WriteStep : std::uint8_t { decided, try_again, walk_again, out_of_memory };

/// Where walks run. `Access` and `Guard` are its types; `view()` and `guard()` return what all
/// walks share. A place whose walks read in place also has:
///   Ref enter_at(hint)                    the current node of the map for an untrusted hint;
///                                         none: the root. Called under the guard
/// A place that writes also has:
///   Result<void> begin_write(lane)        prepares a write before its walk: memory for its value
///   WriteStep write(lane, leaf, wait_for) tries the write at the leaf
///   bool may_try_again(lane)              whether a write that found no memory tries again
///   bool make_room(lane)                  reclaims memory once no walk holds an epoch;
///                                         false: call again later
///   bool may_answer(version, answer)      whether an answer that waits for this version may be
///                                         given; records in it if the version is never released
///   void ended_write()                    a write is over
template <class P>
concept Place =
    Access<typename P::AccessType> && ReadGuard<typename P::GuardType> && requires(P place) {
      { place.view() } -> std::same_as<const MapView&>;
      { place.guard() } -> std::same_as<typename P::GuardType&>;
      { P::kWrites } -> std::convertible_to<bool>;
    };

template <class P>
class Walker {
 public:
  using A = typename P::AccessType;
  static constexpr bool kInPlace = A::kInPlace;
  static constexpr bool kRemembers = RememberingAccess<A>;
  static_assert(kInPlace || RemoteAccess<A>);
  /// `make_access` makes the access of each lane from the lane's index and the ready queue.
  using MakeAccess = std::function<A(std::uint32_t lane, base::ReadyQueue& queue)>;

  /// Requires: the place outlives the walker.
  Walker(P& place, std::uint32_t lanes, const MakeAccess& make_access);

  /// Queues requests; what they point to must live until their completion.
  /// Errors: std::bad_alloc, with nothing queued. Afterwards only handlers and descending scans
  /// allocate; the latter may fail with out_of_memory.
  void submit(std::span<const Request> requests, Handler& handler);
  void submit(const WalkRequest& request);
  /// Reserves room for this many requests of take_over(). Errors: std::bad_alloc.
  void expect(std::size_t requests) { singles_.keep_free(requests); }
  /// Whether this many more requests fit without allocating.
  [[nodiscard]] bool may_take_over(std::size_t requests) const {
    return singles_.room() >= requests;
  }
  /// Queues, without allocating, a request that arrived earlier and was begun elsewhere.
  void take_over(const WalkRequest& request) noexcept { singles_.hand_over(request); }
  /// Resumes each busy lane once. False if no walk progressed.
  bool turn();
  /// Runs until a request completes, nothing is pending, or every walk waits for remote bytes.
  /// Returns the number of pending requests.
  std::size_t poll();
  [[nodiscard]] std::size_t pending() const { return singles_.size() + queued_ + busy_; }
  [[nodiscard]] std::size_t lanes() const { return lanes_.size(); }
  [[nodiscard]] std::uint64_t completed() const { return completed_; }
  /// Whether a write waits for memory until all walks in flight have ended. Submit nothing
  /// meanwhile.
  [[nodiscard]] bool short_of_memory() const { return starved_ != 0; }
  /// The tick of the remote walk that is completing. Requires: called by its handler.
  [[nodiscard]] std::uint32_t completing_tick() const { return completing_tick_; }
  /// Restarts of remote walks, because a node or value had changed or the guard was lost.
  [[nodiscard]] std::uint64_t restarts() const { return restarts_; }
  /// Restarts caused by a buffer that had been reused.
  [[nodiscard]] std::uint64_t met_changes() const { return met_changes_; }

  /// Attempts after which a remote walk fails with `contended`.
  static constexpr std::uint32_t kAttemptsMax = 8;
  /// Bounds on a remote descent, beyond which the bytes are taken for corrupt: how often it may
  /// return to the root, and how many nodes it may visit. Visits may be many, since a node under
  /// constant writes has a long chain of predecessors.
  static constexpr std::uint32_t kRootsMax = 8;
  static constexpr std::uint32_t kNodesMax = 1u << 20;

 private:
  /// `remaining` of a scan without a limit.
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

  /// Awaited by an idle lane: ready if there is a request, else suspends until one arrives.
  struct Next {
    Walker* walker;
    Lane* lane;
    [[nodiscard]] bool await_ready() const { return walker->take_request(*lane); }
    void await_suspend(std::coroutine_handle<>) const { walker->idle_.push_back(lane); }
    void await_resume() const {}
  };

  [[nodiscard]] const MapView& map() const { return place_.view(); }
  /// In place the page table is local; else a null reference stands for the root, to be looked up.
  [[nodiscard]] wire::Ref root_ref() const { return kInPlace ? map().root_ref() : wire::Ref{}; }

  // Begin and end of requests (walker_impl.hpp).
  bool take_request(Lane& lane);
  void wake_lanes();
  bool prepare(Lane& lane);
  bool prepare_scan(Lane& lane);
  void complete(Lane& lane);
  bool starve(Lane& lane);
  bool feed(Lane& lane);
  void refuse(Lane& lane, Code code, std::uint32_t detail = 0);

  // The descent (walker_impl.hpp).
  void want_head(A& access, const std::byte* image, Lane& lane, Warmth warmth) const;
  [[nodiscard]] bool wants_whole_leaf(const Lane& lane) const;
  /// Whether a walk may read its leaf by key.
  [[nodiscard]] static bool begins_by_key(const Lane& lane) {
    return lane.attempts == 0 && !lane.hint && lane.lid == 0 && lane.key.bytes() != 0 &&
           lane.answer.items == 0 && (lane.goal == Goal::point || lane.goal == Goal::forward);
  }
  void want_leaf_part(A& access, const NodeView& leaf, const Lane& lane,
                      const LeafProbe& probe) const;
  [[nodiscard]] PointBytes want_guess(A& access, const std::byte* image, const Lane& lane,
                                      wire::Ref ref) const;
  [[nodiscard]] PointBytes want_rest_of_point(A& access, const std::byte* image, const Lane& lane,
                                              wire::Ref ref) const;
  void want_point(A& access, const std::byte* image, const Lane& lane, const NodeView& head,
                  PointBytes& bytes, wire::Ref ref) const;
  void want_group(A& access, const NodeView& node, const Lane& lane,
                  const GroupChoice& choice) const;
  [[nodiscard]] bool take_version(Lane& lane, const std::byte* header) const;
  bool restart(Lane& lane, Confirmed why);
  bool begin_value(Lane& lane, std::string_view reference);
  [[nodiscard]] bool value_is_whole(const Lane& lane, const std::byte* value) const;

  // At the leaf (walker_impl.hpp, lane_scan.hpp).
  void begin_scan(Lane& lane, const NodeView& leaf);
  void want_scan_part(A& access, const NodeView& leaf, Lane& lane) const;
  [[nodiscard]] std::uint32_t leaves_ahead(const Lane& lane) const;
  void want_ahead(A& access, Lane& lane, wire::Ref ref) const;
  void want_window(A& access, const NodeView& leaf, Lane& lane) const;
  void want_fences(A& access, const NodeView& node) const;
  void want_bound(A& access, const NodeView& leaf, Lane& lane) const;
  bool want_rest(A& access, const NodeView& leaf, Lane& lane) const;
  static const SearchKey* far_bound(const Lane& lane);
  void begin_window(Lane& lane, const NodeView& leaf);
  void resume_scan_behind(Lane& lane, std::string_view key);
  std::uint32_t take_items(Lane& lane, std::uint32_t room, std::uint64_t& out_of_line);
  bool deliver(Lane& lane, std::span<const Item> items);
  void resume_scan_at(Lane& lane, std::string_view key);
  void go_to(Lane& lane, wire::Lid lid) const;
  bool leave_leaf(Lane& lane, const NodeView& leaf);
  bool next_leg(Lane& lane);

  base::WalkTask walk(Lane& lane, A access);

  P& place_;
  base::ReadyQueue ready_;
  std::vector<Lane> lanes_;
  std::vector<Lane*> idle_;
  WalkQueue singles_;
  RequestQueue batches_;
  std::size_t queued_ = 0;   // requests in batches
  std::size_t busy_ = 0;     // lanes
  std::size_t starved_ = 0;  // of the busy lanes, those that wait for memory
  std::uint64_t completed_ = 0;
  std::uint64_t restarts_ = 0;
  std::uint64_t met_changes_ = 0;
  std::uint32_t completing_tick_ = 0;
};

}  // namespace espalier::tree
