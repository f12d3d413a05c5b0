// SPDX-License-Identifier: Apache-2.0
// The Place beside the memory: its walks read in place under an epoch, and may write.
#pragma once

#include <cstdint>
#include <utility>

#include "catalog/redo_sink.hpp"
#include "kinds/map/host/epoch_guard.hpp"
#include "kinds/map/host/host_access.hpp"
#include "kinds/map/walk/walker.hpp"
#include "kinds/map/write/structure.hpp"
#include "store/starved_write.hpp"
#include "store/store_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {

/// The version that must be released before a write may be answered (rules 6 and 7).
[[nodiscard]] std::uint64_t waits_for(const WriteOutcome& outcome);

/// Fills in a write's answer.
void report(const WriteOutcome& outcome, Completion& answer);

/// One thread's place beside one map.
class HostPlaceBase {
 public:
  using GuardType = EpochGuard;
  static constexpr bool kWrites = true;

  HostPlaceBase(ThreadContext& context, MapCore& map)
      : context_(context), map_(map), guard_(context.slot, map.clock) {}

  [[nodiscard]] const MapView& view() const { return map_; }
  [[nodiscard]] EpochGuard& guard() { return guard_; }
  [[nodiscard]] ThreadContext& context() { return context_; }
  [[nodiscard]] MapCore& map() { return map_; }

  // Resolves an untrusted hint to the current buffer of the node that it names. In two steps,
  // between which other requests may run; both under the guard.
  /// Address of the node's page-table entry; 0: the hint names no node of this map, or none any
  /// more. The pool's own table decides whether a node's buffer in use under this generation begins
  /// there; the bytes there are not trusted before, since they may lie in a client's value.
  [[nodiscard]] std::uint64_t entry_of(wire::Ref hint) const;
  /// The node in that entry. Counts the outcome, for publish_hints().
  /// Requires: `entry` is the result of entry_of() for the hint.
  [[nodiscard]] wire::Ref node_of(wire::Ref hint, std::uint64_t entry);
  void publish_hints();
  /// Both steps.
  [[nodiscard]] wire::Ref enter_at(wire::Ref hint) {
    const wire::Ref node = node_of(hint, entry_of(hint));
    publish_hints();
    return node;
  }

  /// Errors: value_too_long, out_of_memory.
  Result<void> begin_write(Lane& lane);
  WriteStep write(Lane& lane, wire::Ref leaf, std::uint64_t& wait_for);
  /// Whether a write that found no memory tries again (store/starved_write.hpp).
  [[nodiscard]] bool may_try_again(const Lane& lane) const;
  /// Reclaims memory. False: not yet, since walks of this worker hold an epoch, or the last attempt
  /// was a moment ago.
  bool make_room(Lane& lane);
  /// From now on answers are given before their versions are released: the caller must delay each
  /// until the version of take_unreleased() is released.
  void answer_before_release() { before_release_ = true; }
  /// The version that the completing write waits for, once; 0: none.
  [[nodiscard]] std::uint64_t take_unreleased() { return std::exchange(unreleased_, 0); }
  /// Whether an answer that waits for this version may be given. If the version will never be
  /// released, because its record cannot become durable, the answer becomes that error.
  [[nodiscard]] bool may_answer(std::uint64_t version, Completion& answer) {
    if (map_.clock.released_now() >= version) return true;
    if (before_release_) {
      unreleased_ = version;
      return true;
    }
    if (!map_.clock.failed()) return false;
    answer.error = catalog::kRecordLost;
    return true;
  }
  /// A write is over: collects retired memory if that is worthwhile.
  void ended_write() {
    if (map_.store.reclaimer.due()) map_.store.reclaimer.collect(context_.cache);
  }

 private:
  [[nodiscard]] static StarvedWrite starved(const Lane& lane);

  ThreadContext& context_;
  MapCore& map_;
  EpochGuard guard_;
  /// Counts since the last publish_hints().
  struct HintCounts {
    std::int64_t admitted = 0;
    std::int64_t moved = 0;
    std::int64_t refused = 0;
  };
  HintCounts hints_;
  bool before_release_ = false;
  std::uint64_t unreleased_ = 0;
};

/// A: how bytes in this process's memory are prefetched.
template <Access A>
class HostPlace : public HostPlaceBase {
 public:
  using AccessType = A;
  using HostPlaceBase::HostPlaceBase;
};

}  // namespace espalier::tree
