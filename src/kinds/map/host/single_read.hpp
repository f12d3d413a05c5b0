// SPDX-License-Identifier: Apache-2.0
// Single reads: the in-place walk of a caller that waits for it, in as few instructions as
// possible. The processor then starts the next call's walk while the last loads of this one are in
// flight, which is all the overlap that one call at a time can have.
#pragma once

#include "kinds/map/host/group.hpp"

namespace espalier::tree {

// Descends to the leaf that answers for the cursor's key, and prefetches what the read needs. If
// the leaf's fences tie with the key, prefetches them too, and sets `unproven`: they were not
// compared.
template <Access A>
template <class Kit>
inline const std::byte* HostExecutor<A>::go_down(Cursor& cursor, bool log, LeafProbe& probe,
                                                 bool& unproven) {
  const Geometry& g = map_.geometry;
  wire::Ref ref = map_.root_ref();
  const std::byte* at = map_.at(ref.offset());
  NodeHead head = NodeHead::read(at);
  wire::Lid lid = map_.root;
  LeafGuess::Guess guess;
  for (;;) {
    if (!leads_by_head(cursor, at, head, ref)) [[unlikely]] {
      note_choice(cursor, ref);
      cursor.other_predecessor = {};
      ref = walk_to_leaf(cursor, ref);
      at = map_.at(ref.offset());
      head = NodeHead::read(at);
      break;
    }
    if (head.leaf()) {
      unproven = needs_fences(cursor, head);
      break;
    }
    const NodeView node(at, g);
    const GroupChoice group = choose_group(node, head, cursor.key, Kit{});
    __builtin_prefetch(at + node.group_offset(group.first) + 64);  // its children, not its prefixes
    const bool above_leaf = head.level() == 1;
    const bool guessing =
        above_leaf && guess_.is_worth(map_.leaves.load(std::memory_order_relaxed));
    if (guessing) guess_.prepare(lid, group.first);
    const std::uint32_t child = choose_child(node, cursor.key, group, Kit{});
    if (guessing) {
      guess = guess_.about(lid, node, group, child);
      if (guess.leaf != 0) LeafGuess::ask(map_.memory, guess, g, log);
    }
    lid = node.child(child);
    if (above_leaf) reached(Moment::leaf_chosen);
    ref = map_.ref(lid);
    if (!ref) [[unlikely]]
      ref = map_.root_ref();
    at = map_.at(ref.offset());
    if (above_leaf && ref.offset() != guess.leaf) {
      want_leaf_head(at, g, log);
    }
    head = NodeHead::read(at);
  }
  const NodeView leaf(at, g);
  probe_leaf(leaf, head, cursor.key, Kit{}, probe);
  base::prefetch(at + probe.begin, at + probe.end);
  if (unproven) want_fences(leaf, false);
  if (log) want_log_between(leaf, head, probe.begin, probe.end);
  if (guess.made()) guess_.learn(guess, ref.offset(), head.chunks(), probe);
  return at;
}

// The leaf, if its fences cover the key; else the leaf that does.
template <Access A>
template <class Kit>
inline const std::byte* HostExecutor<A>::prove(Cursor& cursor, const std::byte* leaf,
                                               LeafProbe& probe) {
  if (NodeView(leaf, map_.geometry).covers(cursor.key)) return leaf;
  ++wrong_choices_;
  cursor.other_predecessor = {};
  leaf = map_.at(walk_to_leaf(cursor, {}).offset());
  probe_leaf(NodeView(leaf, map_.geometry), NodeHead::read(leaf), cursor.key, Kit{}, probe);
  return leaf;
}

template <Access A>
inline bool HostExecutor<A>::begin_single(std::string_view key, Goal goal) {
  if (key.empty() || key.size() > map_.geometry.key_bytes_max) return false;
  alone_.goal = goal;
  alone_.key.assign(key);
  guard_.begin_alone();
  alone_.read_version = guard_.version();
  return true;
}

template <Access A>
template <class Kit>
inline bool HostExecutor<A>::get_with_kit(std::string_view key, Completion& answer) {
  if (!begin_single(key, Goal::point)) return false;
  LeafProbe probe;
  bool unproven = false;
  bool out_of_line = false;
  const std::byte* leaf = go_down<Kit>(alone_, false, probe, unproven);
  const auto find = [&] {
    return find_point(alone_.key, NodeView(leaf, map_.geometry), probe, alone_.read_version, answer,
                      out_of_line);
  };
  answer.read_version = alone_.read_version;
  answer.found = find();
  if (!answer.found && unproven && !planted(Bug::miss_believed)) [[unlikely]] {
    const std::byte* const came_to = std::exchange(leaf, prove<Kit>(alone_, leaf, probe));
    if (leaf != came_to) answer.found = find();
  }
  if (out_of_line) answer.value = stored_value(map_, answer.value);
  return true;
}

template <Access A>
template <class Kit>
inline const Item* HostExecutor<A>::scan_with_kit(std::string_view key, std::uint32_t few) {
  if (!begin_single(key, Goal::forward)) return nullptr;
  LeafProbe probe;
  bool unproven = false;
  const std::byte* at = go_down<Kit>(alone_, true, probe, unproven);
  if (unproven) at = prove<Kit>(alone_, at, probe);
  const NodeView leaf(at, map_.geometry);
  Item* const items = group_items_;
  if (LeafScan::take_few(leaf, alone_.key, probe, few, items)) return items;
  // The log has some of the items: merge it.
  group_scan_.begin(leaf, alone_.read_version, map_.kit, &alone_.key, nullptr);
  std::uint64_t out_of_line = 0;
  if (group_scan_.take(items, few, out_of_line) == few) {
    values_at_hand(items, out_of_line);
    return items;
  }
  let_go();
  return nullptr;
}

#if defined(ESPALIER_HAVE_X86_KITS)
template <Access A>
bool HostExecutor<A>::get_avx512(std::string_view key, Completion& answer) {
  return get_with_kit<Avx512Kit>(key, answer);
}
template <Access A>
bool HostExecutor<A>::get_avx2(std::string_view key, Completion& answer) {
  return get_with_kit<Avx2Kit>(key, answer);
}
template <Access A>
const Item* HostExecutor<A>::scan_avx512(std::string_view key, std::uint32_t few) {
  return scan_with_kit<Avx512Kit>(key, few);
}
template <Access A>
const Item* HostExecutor<A>::scan_avx2(std::string_view key, std::uint32_t few) {
  return scan_with_kit<Avx2Kit>(key, few);
}
#endif

template <Access A>
bool HostExecutor<A>::read_one(std::string_view key, Completion& answer) {
#if defined(ESPALIER_HAVE_X86_KITS)
  if (map_.kit.isa == Isa::avx512) return get_avx512(key, answer);
  if (map_.kit.isa == Isa::avx2) return get_avx2(key, answer);
#endif
  return get_with_kit<ScalarKit>(key, answer);
}

template <Access A>
const Item* HostExecutor<A>::scan_few(std::string_view key, std::uint32_t few) {
#if defined(ESPALIER_HAVE_X86_KITS)
  if (map_.kit.isa == Isa::avx512) return scan_avx512(key, few);
  if (map_.kit.isa == Isa::avx2) return scan_avx2(key, few);
#endif
  return scan_with_kit<ScalarKit>(key, few);
}

}  // namespace espalier::tree
