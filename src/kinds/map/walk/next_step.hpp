// SPDX-License-Identifier: Apache-2.0
// Where a walk goes from a node: idea 1 of DESIGN.md, in one place, for every form of the walk.
//
// A step has two halves, for its bytes come in two parts. `visit` asks the node's head whether the
// node may answer, and says where to go if not; `child_of` chooses the child of a node that may.
// `next_step` is both, for walks whose bytes are all at hand.
//
// No step assumes that those before it were checked: a walk may come to a node by any way, and go
// down without asking. What decides is the leaf, by its fences and versions.
#pragma once

#include "kinds/map/node/leaf_search.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/walk/map_view.hpp"
#include "kinds/map/walk/walk_state.hpp"

namespace espalier::tree {

enum class StepKind : std::uint8_t {
  leaf,         ///< this leaf may answer
  child,        ///< go on to `lid`
  successor,    ///< superseded before the read version: go on to `ref`
  predecessor,  ///< too new for the read version: go on to `ref`
  root,  ///< no node of this map, not the one that was meant, or not of this key: start again
};

struct Step {
  StepKind kind = StepKind::root;
  wire::Ref ref{};
  wire::Lid lid = 0;
  std::uint32_t child = 0;  ///< of a child: which one of the node's
};

/// The version as of which a walk reads nodes: without versions always the newest state.
[[nodiscard]] inline std::uint64_t as_of(const MapView& map, const Cursor& cursor) {
  return map.versions ? cursor.read_version : kNewest;
}

/// Whether this is the node that was meant, of this map, and its versions enclose the read version.
/// What they say stays true while the walk's epoch or lease holds: they were read from a node that
/// was still this one after them, and it is superseded, if at all, above the read version.
[[nodiscard]] inline bool is_meant(const MapView& map, std::uint64_t read_version,
                                   const std::byte* node, const NodeHead& head, wire::Ref ref) {
  const std::uint64_t meant = std::uint64_t{ref.generation()} << 32 | map.id;
  constexpr std::uint64_t kIdentity = std::uint64_t{wire::kGenerationMask} << 32 | 0xFFFFFFFF;
  return ((head.identity ^ meant) & kIdentity) == 0 && head.created <= read_version &&
         read_version < head.superseded &&
         (base::load_shared<std::uint32_t>(node + offsetof(wire::NodeHeader, generation)) &
          wire::kGenerationMask) == ref.generation();
}

/// Whether something else lies where this node is said to be.
[[nodiscard]] inline bool is_another(const MapView& map, const NodeHead& head, wire::Ref ref) {
  return head.map_id() != map.id || head.superseded == 0 ||
         (head.generation() & wire::kGenerationMask) != ref.generation();
}

/// Idea 1 as it nearly always goes: the node is meant, and its fences' key prefixes enclose the
/// key's.
[[nodiscard]] inline bool answers_by_head(const MapView& map, const SearchKey& key,
                                          std::uint64_t read_version, const std::byte* node,
                                          const NodeHead& head, wire::Ref ref) {
  const std::uint64_t word = key.prefix();
  return head.low_key_prefix < word && word < head.high_key_prefix &&
         is_meant(map, read_version, node, head, ref);
}

/// Whether an interior node leads on. Where a fence's key prefix ties with the key's, as with keys
/// that begin alike, the walk goes on without asking the fence: the leaf's fences decide. Of a leaf
/// this says that it may answer if its fences do, or if it has the key: then it covers it.
[[nodiscard]] inline bool leads_by_head(const MapView& map, const SearchKey& key,
                                        std::uint64_t read_version, const std::byte* node,
                                        const NodeHead& head, wire::Ref ref) {
  const std::uint64_t word = key.prefix();
  return head.low_key_prefix <= word && word <= head.high_key_prefix &&
         is_meant(map, read_version, node, head, ref);
}

/// The same with all that is rare: ties of fences, predecessors, successors, descending walks.
[[nodiscard]] Step visit_exactly(const MapView& map, Cursor& cursor, const NodeView& node,
                                 const NodeHead& head, wire::Ref ref);

/// The first half of a step: may the node answer? `child` of an interior node that may: the lid is
/// still to be chosen.
/// Requires: the node's header is at hand; its fences where their heads tie with the key, and in
/// descending walks (`needs_fences`).
[[nodiscard]] inline Step visit(const MapView& map, Cursor& cursor, const NodeView& node,
                                const NodeHead& head, wire::Ref ref) {
  if (cursor.goal != Goal::backward &&
      answers_by_head(map, cursor.key, as_of(map, cursor), node.bytes(), head, ref)) [[likely]] {
    return {head.leaf() ? StepKind::leaf : StepKind::child, ref, 0};
  }
  return visit_exactly(map, cursor, node, head, ref);
}

/// Where a leaf is the one that was meant and ends before the key: the one to its right, a hint,
/// which was a part of it before it was split; else 0.
/// Requires: as `visit`.
[[nodiscard]] wire::Lid right_of_leaf(const MapView& map, const Cursor& cursor,
                                      const NodeView& node, const NodeHead& head, wire::Ref ref);

/// Whether a descending walk begins at the end of all keys.
[[nodiscard]] inline bool from_the_end(const Cursor& cursor) {
  return cursor.goal == Goal::backward && cursor.key.bytes() == 0;
}

/// Whether the full fences decide if the node covers the key.
[[nodiscard]] inline bool needs_fences(const Cursor& cursor, const NodeHead& head) {
  return cursor.goal == Goal::backward || cursor.key.prefix() == head.low_key_prefix ||
         cursor.key.prefix() == head.high_key_prefix;
}

/// The second half: which child of an interior node is next on the way.
/// Requires: the groups of the choice are at hand, or in a descending walk from the end the last
/// group; the separators where they decide.
[[nodiscard]] inline std::uint32_t child_of(const Cursor& cursor, const NodeView& node,
                                            const GroupChoice& choice, const SearchKit& kit) {
  return cursor.goal == Goal::backward ? choose_child_descending(node, cursor.key, choice, kit)
                                       : choose_child(node, cursor.key, choice, kit);
}

/// A whole step. Requires: the whole node is at hand.
[[nodiscard]] inline Step next_step(const MapView& map, Cursor& cursor, const NodeView& node,
                                    const NodeHead& head, wire::Ref ref) {
  Step step = visit(map, cursor, node, head, ref);
  if (step.kind != StepKind::child) return step;
  const GroupChoice choice = choose_group(node, head, cursor.key, map.kit);
  step.child = child_of(cursor, node, choice, map.kit);
  step.lid = node.child(step.child);
  return step;
}

/// The leaf that may answer, from any node or from the root, where nothing needs to be waited for.
/// Requires: the region's bytes are at hand.
[[nodiscard]] wire::Ref find_leaf(const MapView& map, Cursor& cursor, wire::Ref ref);

}  // namespace espalier::tree
