// SPDX-License-Identifier: Apache-2.0
// The host's executor: runs requests of one thread on one map, beside the memory.
//
// Most requests run in groups (group.hpp), and single reads in one piece (single_read.hpp); both
// share the walk's deciding functions. Requests that go backward, wait long, or need memory take a
// lane of the Walker, the general form of the walk.
//
// Thread: an executor belongs to one thread at a time.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/try_reserve.hpp"
#include "kinds/map/host/group_state.hpp"
#include "kinds/map/host/host_place.hpp"
#include "kinds/map/node/search_kits.hpp"
#include "kinds/map/walk/walker.hpp"

namespace espalier::tree {

template <Access A>
class HostExecutor {
 public:
  static_assert(A::kInPlace);
  /// `make_access` makes the access of each lane from the lane's index and the ready queue.
  using MakeAccess = typename Walker<HostPlace<A>>::MakeAccess;
  /// Requests per group; two groups alternate.
  static constexpr std::uint32_t kGroup = 16;
  /// Limit on requests waiting for lanes, beyond which groups take no more: as many as the clients
  /// of a scheduler have in flight.
  static constexpr std::uint32_t kHandedOver = 256;
  /// Scans of more items take a lane: hardware prefetch streams their bytes.
  static constexpr std::uint32_t kGroupScanItems = 4096;
  /// Writes of longer values take a lane.
  static constexpr std::size_t kGroupValueBytes = std::size_t{16} << 10;

  /// Errors: std::bad_alloc. Later only submit() and run() throw it, with nothing queued.
  HostExecutor(ThreadContext& context, MapCore& map, std::uint32_t lanes,
               const MakeAccess& make_access);

  /// Queues requests; what they point to must live until their completion.
  void submit(std::span<const Request> requests, Handler& handler);
  void submit(const WalkRequest& request);
  /// Queues one request with an untrusted hint where a read may enter; writes ignore it.
  void submit(const Request& request, Handler& handler, wire::Ref hint);
  /// Runs one request to its end. Requires: nothing is pending.
  void run(const WalkRequest& request);
  /// Reads one key: fills in `found`, `value`, `version` and `read_version`. What the answer points
  /// to is valid until let_go(). Returns false, without need of let_go(), if the key is invalid.
  /// Requires: in place; nothing is pending.
  bool read_one(std::string_view key, Completion& answer);
  /// Reads the first `few` items from `key` on, if they lie in one leaf. They, and what they point
  /// to, are valid until let_go(). Returns null, without need of let_go(), if they do not.
  /// Requires: in place; nothing is pending; few <= LeafScan::kFew.
  const Item* scan_few(std::string_view key, std::uint32_t few);
  void let_go() { guard_.idle(); }
  /// Runs until a request completes, nothing is pending, or no walk can proceed (only with an
  /// access for tests). Returns the number of pending requests.
  std::size_t poll();
  /// Runs one turn of what is in flight, without waiting. Returns the number of pending requests.
  std::size_t advance();
  /// Runs until nothing is pending.
  void drain();
  [[nodiscard]] std::size_t pending() const { return queued_ + lanes_.pending(); }
  /// As in HostPlaceBase.
  void answer_before_release() { place_.answer_before_release(); }
  [[nodiscard]] std::uint64_t take_unreleased() { return place_.take_unreleased(); }
  /// The leaf of the answer being completed; 0: none, or not known here.
  [[nodiscard]] wire::Lid answering() const { return answering_; }
  /// How often a forward request was led to a node of other keys.
  [[nodiscard]] std::uint64_t wrong_choices() const { return wrong_choices_; }

 private:
  /// The answer of a write that is not released yet.
  struct WaitingAnswer {
    Completion answer;
    Handler* handler;
    std::uint64_t wait_for;
  };

  bool turn();
  void await_release(std::uint64_t seen);
  [[nodiscard]] std::uint64_t completed() const { return completed_ + lanes_.completed(); }
  [[nodiscard]] bool answers_by_head(const Cursor& cursor, const std::byte* node,
                                     const NodeHead& head, wire::Ref ref) const {
    return tree::answers_by_head(map_, cursor.key, as_of(map_, cursor), node, head, ref);
  }
  [[nodiscard]] bool leads_by_head(const Cursor& cursor, const std::byte* node,
                                   const NodeHead& head, wire::Ref ref) const {
    return tree::leads_by_head(map_, cursor.key, as_of(map_, cursor), node, head, ref);
  }
  /// Continues a descent, one request at a time.
  [[nodiscard, gnu::noinline]] wire::Ref walk_to_leaf(Cursor& cursor, wire::Ref ref) const {
    return find_leaf(map_, cursor, ref);
  }

  template <class Kit>
  const std::byte* go_down(Cursor& cursor, bool log, LeafProbe& probe, bool& unproven);
  template <class Kit>
  const std::byte* prove(Cursor& cursor, const std::byte* leaf, LeafProbe& probe);
  bool begin_single(std::string_view key, Goal goal);
  template <class Kit>
  bool get_with_kit(std::string_view key, Completion& answer);
  template <class Kit>
  const Item* scan_with_kit(std::string_view key, std::uint32_t few);
#if defined(ESPALIER_HAVE_X86_KITS)
  [[gnu::flatten]] ESPALIER_TARGET_AVX512 bool get_avx512(std::string_view key, Completion& answer);
  [[gnu::flatten]] ESPALIER_TARGET_AVX2 bool get_avx2(std::string_view key, Completion& answer);
  [[gnu::flatten]] ESPALIER_TARGET_AVX512 const Item* scan_avx512(std::string_view key,
                                                                  std::uint32_t few);
  [[gnu::flatten]] ESPALIER_TARGET_AVX2 const Item* scan_avx2(std::string_view key,
                                                              std::uint32_t few);
#endif

  /// The leaf of the last consecutive writes, as with ascending keys: the next one may skip the
  /// descent.
  struct Finger {
    static constexpr std::uint32_t kWritesMin = 4;  // consecutive writes before the finger is used
    wire::Lid leaf = 0;
    std::uint32_t writes = 0;
  };

  /// Reserves room for answers of writes that may all wait for a release; without it none begins.
  [[nodiscard]] bool may_wait() noexcept {
    return base::try_reserve(waiting_, 2 * groups_[0].slots.size());
  }
  [[nodiscard]] bool group_is_next();
  [[nodiscard]] bool group_has_work() { return groups_[1 - turn_].count != 0 || group_is_next(); }
  [[gnu::noinline]] void fill(Group& group);
  [[nodiscard]] bool join(GroupSlot& slot, const Request& request, Handler& handler);
  [[nodiscard]] bool join_scan(GroupSlot& slot, const Request& request);
  [[gnu::noinline]] std::uint32_t enter_by_hints(std::span<GroupSlot> slots, std::uint32_t top);
  void enter(GroupSlot& slot, wire::Ref ref, std::uint32_t top);
  void want_group_heads(wire::Ref node) const;
  void begin(Group& group);
  [[gnu::noinline]] void end(Group& group);
  /// noexcept: a handler that throws ends the process, as in a lane.
  void step_group() noexcept;
#if defined(ESPALIER_HAVE_X86_KITS)
  [[gnu::flatten]] ESPALIER_TARGET_AVX512 void step_avx512();
  [[gnu::flatten]] ESPALIER_TARGET_AVX2 void step_avx2();
#endif
  template <class Kit>
  void step();
  template <class Kit>
  void descend(std::span<GroupSlot> slots, bool hinted);
  [[gnu::noinline]] void go_alone(GroupSlot& slot);
  void find_anew(GroupSlot& slot);
  void note_choice(const Cursor& cursor, wire::Ref chosen);
  [[nodiscard]] bool is_proven(GroupSlot& slot);
  void arrive_at_leaf(GroupSlot& slot);
  template <class Kit>
  void look_at_leaf(GroupSlot& slot);
  void want_neighbour(const GroupSlot& slot) const;
  template <class Kit>
  [[nodiscard]] std::uint32_t scan_end(GroupSlot& slot, const NodeView& leaf, const Kit& kit);
  bool bound_scan(const Request& request, const NodeView& leaf);
  bool answer_group(std::span<GroupSlot> slots);
  void answer_point(GroupSlot& slot);
  [[gnu::noinline]] void answer_values(std::span<GroupSlot> slots);
  void want_value(std::string_view value) const;
  [[nodiscard]] bool goes_out_of_line(const Request& request) const;
  [[nodiscard]] bool store_long_value(GroupSlot& slot);
  [[nodiscard]] WriteIntent intent_of(const GroupSlot& slot) const;
  [[gnu::noinline]] void answer_write(GroupSlot& slot);
  void end_write(GroupSlot& slot, const WriteOutcome& outcome);
  void note_leaf(const GroupSlot& slot);
  [[nodiscard]] bool is_at_finger(GroupSlot& slot) const;
  [[nodiscard]] bool write_at_finger(Group& group) noexcept;
  [[nodiscard]] ScanAhead::Part begin_of(std::span<const GroupSlot> slots) const;
  [[gnu::noinline]] void answer_scan(GroupSlot& slot, const ScanAhead::Part& after);
  [[nodiscard]] bool begin_scan(GroupSlot& slot, const NodeView& leaf, bool bounded);
  bool answer_few(GroupSlot& slot, const NodeView& leaf);
  void answer_floor(GroupSlot& slot);
  bool take_items(GroupSlot& slot);
  void values_at_hand(Item* items, std::uint64_t out_of_line) const;
  void complete_scan(GroupSlot& slot);
  bool answer_released_writes();
  void hand_to_lane(GroupSlot& slot);
  void complete(GroupSlot& slot, Completion& answer);
  static void sign(Completion& answer, const Request& request);

  ThreadContext& context_;
  MapCore& map_;
  HostPlace<A> place_;
  EpochGuard& guard_;
  Walker<HostPlace<A>> lanes_;
  // Alternating: one is filled and descends while the leaves of the other are being prefetched.
  Group groups_[2];
  std::uint32_t turn_ = 0;
  LeafScan group_scan_;
  SearchKey group_high_;
  Item group_items_[ScanAhead::kStepItems];
  ScanAhead ahead_;  // of the current scan
  Finger finger_;
  bool wrote_ = false;          // the current group wrote something
  bool values_wanted_ = false;  // gets of the current group wait for out-of-line values
  std::vector<WaitingAnswer> waiting_;
  Cursor alone_;     // cursor of single reads
  LeafGuess guess_;  // used with one request in flight
  RequestQueue batches_;
  std::size_t queued_ = 0;       // not answered, and not in a lane
  std::uint64_t completed_ = 0;  // without those of lanes
  std::uint64_t wrong_choices_ = 0;
  wire::Lid answering_ = 0;
};

/// The executor of a thread's requests on one map.
using MapExecutor = HostExecutor<HostAccess>;

extern template class Walker<HostPlace<HostAccess>>;
extern template class HostExecutor<HostAccess>;

}  // namespace espalier::tree
