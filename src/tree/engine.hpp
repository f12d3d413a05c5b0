// SPDX-License-Identifier: Apache-2.0
// Many walks in flight on one core: the walk itself, written once over an Access, and the loop that
// resumes the walk whose bytes have come (DESIGN idea 2).
//
// The walk is one coroutine for all operations: pick up a request, descend to the leaf that may
// answer, do there what the goal asks, perhaps go on to the next leaf. It enters at a hint or at
// the root; every node on the way is asked whether it may answer (idea 1), and says where to go if
// not.
//
// Thread: an engine belongs to one thread at a time.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "tree/access.hpp"
#include "tree/leaf_guess.hpp"
#include "tree/pins.hpp"
#include "tree/search_kits.hpp"
#include "tree/structure.hpp"
#include "tree/walk_state.hpp"

namespace espalier::tree {

template <Access A>
class Engine {
 public:
  /// `make_access` gives each lane its access, from the lane's index and the ready queue.
  using MakeAccess = std::function<A(std::uint32_t lane, base::ReadyQueue& queue)>;
  /// Most requests that go through their stages together; two such groups take turns.
  static constexpr std::uint32_t kGroup = 16;
  /// Scans of more items take a lane: their bytes stream in by themselves.
  static constexpr std::uint32_t kGroupScanItems = 4096;

  Engine(Worker& worker, MapCore& map, std::uint32_t lanes, const MakeAccess& make_access);

  /// Queues requests; what they point to must live until their completion.
  void submit(std::span<const Request> requests, Handler& handler);
  void submit(const WalkRequest& request);
  /// Runs one request to its end. Requires: nothing is pending.
  void run(const WalkRequest& request);
  /// Reads one key: fills in `found`, `value`, `version` and `read_version`. What the answer points
  /// to stays until let_go(). Returns false, and needs no let_go(), if there can be no such key.
  /// Requires: in place; nothing is pending.
  bool get_at_once(std::string_view key, Completion& answer);
  /// Reads the first `few` items from `key` on, if one leaf has them all. They, and what they point
  /// to, stay until let_go(). Returns null, and needs no let_go(), if none has.
  /// Requires: in place; nothing is pending; few <= LeafScan::kFew.
  const Item* scan_at_once(std::string_view key, std::uint32_t few);
  void let_go() { pins_.idle(); }
  /// Runs until something has completed, nothing is left, or all walks wait for bytes that do not
  /// come by themselves. Returns how many are left.
  std::size_t poll();
  /// One turn of what is in flight: never waits for anything. Returns how many are left.
  std::size_t advance();
  /// Runs until nothing is left. Requires: an access whose bytes come by themselves.
  void drain();
  [[nodiscard]] std::size_t pending() const { return queued_ + busy_; }

 private:
  struct Batch {
    std::span<const Request> requests;
    Handler* handler;
  };
  /// Awaited by a lane that has nothing to do: at once if there is a request, else until one comes.
  struct Next {
    Engine* engine;
    Lane* lane;
    [[nodiscard]] bool await_ready() const { return engine->take_request(*lane); }
    void await_suspend(std::coroutine_handle<>) const { engine->idle_.push_back(lane); }
    void await_resume() const {}
  };
  struct Judgement {
    bool answers = false;
    wire::Ref next{};
  };
  /// Of a write that is not released yet.
  struct WaitingAnswer {
    Completion answer;
    Handler* handler;
    std::uint64_t wait_for;
  };
  enum class WriteStep : std::uint8_t { decided, try_again, walk_again, starved };

  /// So often a write that finds no memory tries again; an erase more often, for it needs only what
  /// earlier ones have freed, when other threads let go of it.
  static constexpr std::uint32_t kAttempts = 2;
  static constexpr std::uint32_t kEraseAttempts = 64;

  bool take_request(Lane& lane);
  bool next_batch();
  void pin(Lane& lane);
  void wake_lanes();
  bool turn();
  bool prepare(Lane& lane);
  bool prepare_scan(Lane& lane);
  bool prepare_write(Lane& lane);
  void complete(Lane& lane);
  void complete(Lane& lane, Code code, std::uint32_t detail = 0);
  [[nodiscard]] Judgement judge(Lane& lane, const NodeView& node, const NodeHead& head,
                                wire::Ref ref) const;
  [[nodiscard]] Judgement redirect(Cursor& cursor, const NodeView& node, const NodeHead& head,
                                   wire::Ref ref) const;
  [[nodiscard]] wire::Ref predecessor(Cursor& cursor, const NodeView& node) const;
  void want_fences(A& access, const NodeView& node, const Lane& lane) const;
  /// In place the page table is at hand; else no reference stands for it, and the walk looks it up.
  [[nodiscard]] wire::Ref root_ref() const {
    return A::kInPlace ? map_.table.get(map_.root) : wire::Ref{};
  }
  void go_to(Lane& lane, wire::Lid lid) const;
  [[nodiscard]] bool answers_at_once(const SearchKey& key, std::uint64_t read_version,
                                     const std::byte* node, const NodeHead& head,
                                     wire::Ref ref) const;
  [[nodiscard, gnu::noinline]] wire::Ref find_leaf(Cursor& cursor, wire::Ref ref) const;

  [[nodiscard]] std::uint64_t as_of(const Cursor& cursor) const {
    return map_.options.versions ? cursor.read_version : kNewest;
  }
  [[nodiscard]] wire::Ref named_at(std::uint64_t entry) const {
    return {base::load_shared<std::uint64_t>(map_.at(entry), std::memory_order_acquire)};
  }

  template <class Kit>
  const std::byte* go_down(Cursor& cursor, bool log, LeafProbe& probe);
  bool begin_at_once(std::string_view key, Goal goal);
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

  [[nodiscard]] bool group_is_next();
  [[nodiscard]] bool group_has_work() { return groups_[1 - turn_].count != 0 || group_is_next(); }
  [[gnu::noinline]] void fill(Group& group);
  [[nodiscard]] bool join(GroupSlot& slot, const Request& request, Handler& handler);
  [[nodiscard]] bool join_scan(GroupSlot& slot, const Request& request);
  void begin(Group& group);
  [[gnu::noinline]] void end(Group& group);
  /// A handler that throws ends the process here, as in a lane.
  void step_group() noexcept;
#if defined(ESPALIER_HAVE_X86_KITS)
  [[gnu::flatten]] ESPALIER_TARGET_AVX512 void step_avx512();
  [[gnu::flatten]] ESPALIER_TARGET_AVX2 void step_avx2();
#endif
  template <class Kit>
  void step();
  template <class Kit>
  void descend(std::span<GroupSlot> slots);
  [[gnu::noinline]] void go_alone(GroupSlot& slot);
  void arrive_at_leaf(GroupSlot& slot);
  template <class Kit>
  void look_at_leaf(GroupSlot& slot);
  void want_neighbour(const GroupSlot& slot) const;
  template <class Kit>
  [[nodiscard]] std::uint32_t scan_end(GroupSlot& slot, const NodeView& leaf, const Kit& kit);
  bool bound_scan(const Request& request, const NodeView& leaf);
  bool answer_group(std::span<GroupSlot> slots);
  void answer_point(GroupSlot& slot);
  [[gnu::noinline]] void answer_write(GroupSlot& slot);
  [[nodiscard]] ScanAhead::Part begin_of(std::span<const GroupSlot> slots) const;
  [[gnu::noinline]] void answer_scan(GroupSlot& slot, const ScanAhead::Part& after);
  [[nodiscard]] bool begin_scan(GroupSlot& slot, const NodeView& leaf, bool bounded);
  bool answer_few(GroupSlot& slot, const NodeView& leaf);
  void answer_floor(GroupSlot& slot);
  bool take_items(GroupSlot& slot);
  void values_at_hand(Item* items, std::uint64_t out_of_line) const;
  void complete_scan(GroupSlot& slot);
  bool settle_writes();
  void hand_to_lane(GroupSlot& slot);
  void complete(GroupSlot& slot, Completion& answer);
  static void sign(Completion& answer, const Request& request);

  void want_head(A& access, const std::byte* image, const Lane& lane, Warmth warmth) const;
  void want_leaf_part(A& access, const NodeView& leaf, const Lane& lane,
                      const LeafProbe& probe) const;
  void want_scan_part(A& access, const NodeView& leaf, Lane& lane) const;
  static bool find_point(const SearchKey& key, const NodeView& leaf, const LeafProbe& probe,
                         std::uint64_t read_version, Completion& answer, bool& out_of_line);
  WriteStep write_here(Lane& lane, wire::Ref leaf, std::uint64_t& wait_for);
  WriteOutcome write_in(wire::Ref leaf, const WriteIntent& intent,
                        const LeafProbe* known = nullptr);
  static void report(const WriteOutcome& outcome, Completion& answer);
  [[nodiscard]] static std::uint64_t waits_for(const WriteOutcome& outcome);
  void begin_scan(Lane& lane, const NodeView& leaf);
  std::uint32_t take_items(Lane& lane, std::uint32_t room, std::uint64_t& out_of_line);
  bool deliver(Lane& lane, std::span<const Item> items);
  bool leave_leaf(Lane& lane, const NodeView& leaf);
  bool next_leg(Lane& lane);
  void starve(Lane& lane);
  [[nodiscard]] bool feed(Lane& lane);
  base::WalkTask walk(Lane& lane, A access);

  Worker& worker_;
  MapCore& map_;
  Pins pins_;
  base::ReadyQueue ready_;
  std::vector<Lane> lanes_;
  // By turns, one is filled and descends while the leaves of the other are on their way. Without
  // slots if everything takes lanes.
  Group groups_[2];
  std::uint32_t turn_ = 0;
  LeafScan group_scan_;
  SearchKey group_high_;
  Item group_items_[ScanAhead::kStepItems];
  ScanAhead ahead_;     // of the scan in hand
  bool wrote_ = false;  // the group in hand wrote something
  std::vector<WaitingAnswer> waiting_;
  std::vector<Lane*> idle_;
  Cursor alone_;     // of reads at once
  LeafGuess guess_;  // used with one request in flight
  Batch current_{};  // of the batches, the one that lanes take from now
  std::deque<Batch> batches_;
  std::deque<WalkRequest> singles_;
  std::size_t queued_ = 0;
  std::size_t busy_ = 0;
  std::size_t starved_ = 0;  // of the busy lanes, those that wait for memory
  std::uint64_t completed_ = 0;
};

extern template class Engine<HostAccess>;

}  // namespace espalier::tree
