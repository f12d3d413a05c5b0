// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/walk/next_step.hpp"

#include <utility>

namespace espalier::tree {
namespace {

constexpr Step kRoot{};

// Of two predecessors (rule 8) the key's prefix usually picks one. On a tie the second is tried
// first; if it does not cover the key, the walk continues at the other.
wire::Ref predecessor(Cursor& cursor, const NodeView& node) {
  const wire::Ref second = node.old2_ref();
  if (!second) return node.old_ref();
  const bool from_end = cursor.goal == Goal::backward && cursor.key.bytes() == 0;
  const std::uint64_t border = node.old2_low_key_prefix();
  if (!from_end && cursor.key.prefix() < border) return node.old_ref();
  if (!from_end && cursor.key.prefix() == border) cursor.other_predecessor = node.old_ref();
  return second;
}

bool covers(const Cursor& cursor, const NodeView& node) {
  const bool descending = cursor.goal == Goal::backward && !planted(Bug::descending_like_ascending);
  return descending ? node.covers_descending(cursor.key) : node.covers(cursor.key);
}

}  // namespace

Step visit_exactly(const MapView& map, Cursor& cursor, const NodeView& node, const NodeHead& head,
                   wire::Ref ref) {
  const auto meant = [&](std::uint32_t generation) {
    return (generation & wire::kGenerationMask) == ref.generation() ||
           planted(Bug::skip_generation_check);
  };
  if ((head.map_id() != map.id && !planted(Bug::skip_map_check)) || !meant(head.generation())) {
    return kRoot;
  }
  if (head.created == wire::kNoNode) return kRoot;
  Visibility visibility = head.current_at(cursor.read_version, map.versions);
  if (visibility == Visibility::older && planted(Bug::ignore_created))
    visibility = Visibility::answers;
  if (visibility == Visibility::newer && planted(Bug::ignore_superseded))
    visibility = Visibility::answers;
  switch (visibility) {
    case Visibility::older: {
      const wire::Ref old = predecessor(cursor, node);
      // Without a predecessor nothing older existed: this node has the whole history.
      if (old) return {StepKind::predecessor, old, 0};
      break;
    }
    case Visibility::newer: {
      const wire::Ref successor = node.successor_ref();
      if (!meant(node.generation()) || !successor) return kRoot;
      return {StepKind::successor, successor, 0};
    }
    case Visibility::answers:
      if (!meant(node.generation())) return kRoot;
      break;
    default: return kRoot;
  }
  if (!covers(cursor, node) && !planted(Bug::skip_range_check)) {
    const wire::Ref other = std::exchange(cursor.other_predecessor, {});
    return other ? Step{StepKind::predecessor, other, 0} : kRoot;
  }
  return {head.leaf() ? StepKind::leaf : StepKind::child, ref, 0};
}

wire::Lid right_of_leaf(const MapView& map, const Cursor& cursor, const NodeView& node,
                        const NodeHead& head, wire::Ref ref) {
  if (!head.leaf() || !is_meant(map, as_of(map, cursor), node.bytes(), head, ref)) return 0;
  const std::uint64_t word = cursor.key.prefix();
  const bool ends_before = word != head.high_key_prefix
                               ? word > head.high_key_prefix
                               : compare_keys(cursor.key.view(), node.high_fence()) >= 0;
  return node.has_high_fence() && ends_before ? node.right() : 0;
}

wire::Ref find_leaf(const MapView& map, Cursor& cursor, wire::Ref ref) {
  for (;;) {
    while (!ref) ref = map.root_ref();
    const std::byte* at = map.at(ref.offset());
    const NodeHead head = NodeHead::read(at);
    const Step step = next_step(map, cursor, NodeView(at, map.geometry), head, ref);
    switch (step.kind) {
      case StepKind::leaf: return ref;
      case StepKind::child: ref = map.ref(step.lid); break;
      default: ref = step.ref; break;
    }
  }
}

}  // namespace espalier::tree
