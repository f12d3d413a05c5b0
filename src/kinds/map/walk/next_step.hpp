// SPDX-License-Identifier: Apache-2.0
// Decides where a walk goes from a node: idea 1 of DESIGN.md, in one place, for every kind of walk.
//
// A step has two halves because its bytes arrive in two parts. `visit` checks by the node's head
// whether the node may answer, and names the next node if not. `child_of` chooses the child of a
// node that may. `next_step` does both, for walks whose bytes are all at hand.
//
// No step relies on checks by earlier ones: a walk may reach a node by any way, and descend without
// checking. The leaf decides, by its fences and versions.
#pragma once

#include "kinds/map/node/leaf_search.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/walk/map_view.hpp"
#include "kinds/map/walk/walk_state.hpp"

namespace espalier::tree {

enum class StepKind : std::uint8_t {
  leaf,         ///< this leaf may answer
  child,        ///< continue at `lid`
  successor,    ///< superseded before the read version: continue at `ref`
  predecessor,  ///< created after the read version: continue at `ref`
  root,         ///< not of this map, not the expected node, or not of this key: restart
};

struct Step {
  StepKind kind = StepKind::root;
  wire::Ref ref{};
  wire::Lid lid = 0;
  std::uint32_t child = 0;  ///< StepKind::child: the child's index
};

/// The version at which a walk reads nodes: without versions always the newest state.
[[nodiscard]] inline std::uint64_t as_of(const MapView& map, const Cursor& cursor) {
  return map.versions ? cursor.read_version : kNewest;
}

/// Whether this is the expected node, of this map, with versions that enclose the read version. The
/// answer stays true while the walk's epoch or lease holds: the node was checked to be the same
/// after its versions were read, and if it is superseded, then above the read version.
[[nodiscard]] inline bool is_meant(const MapView& map, std::uint64_t read_version,
                                   const std::byte* node, const NodeHead& head, wire::Ref ref) {
  const std::uint64_t meant = std::uint64_t{ref.generation()} << 32 | map.id;
  constexpr std::uint64_t kIdentity = std::uint64_t{wire::kGenerationMask} << 32 | 0xFFFFFFFF;
  return ((head.identity ^ meant) & kIdentity) == 0 && head.created <= read_version &&
         read_version < head.superseded &&
         (base::load_shared<std::uint32_t>(node + offsetof(wire::NodeHeader, generation)) &
          wire::kGenerationMask) == ref.generation();
}

/// Whether the buffer no longer holds the node that `ref` names.
[[nodiscard]] inline bool is_another(const MapView& map, const NodeHead& head, wire::Ref ref) {
  return head.map_id() != map.id || head.superseded == 0 ||
         (head.generation() & wire::kGenerationMask) != ref.generation();
}

/// The usual case of idea 1: the node is the expected one, and its fences' key prefixes enclose the
/// key's.
[[nodiscard]] inline bool answers_by_head(const MapView& map, const SearchKey& key,
                                          std::uint64_t read_version, const std::byte* node,
                                          const NodeHead& head, wire::Ref ref) {
  const std::uint64_t word = key.prefix();
  return head.low_key_prefix < word && word < head.high_key_prefix &&
         is_meant(map, read_version, node, head, ref);
}

/// Whether an interior node leads on. If a fence's key prefix ties with the key's, as with keys
/// that share a prefix, the walk descends without comparing the fence: the leaf's fences decide.
/// For a leaf, true means that it may answer if its fences cover the key, or if it has the key.
[[nodiscard]] inline bool leads_by_head(const MapView& map, const SearchKey& key,
                                        std::uint64_t read_version, const std::byte* node,
                                        const NodeHead& head, wire::Ref ref) {
  const std::uint64_t word = key.prefix();
  return head.low_key_prefix <= word && word <= head.high_key_prefix &&
         is_meant(map, read_version, node, head, ref);
}

/// As visit(), including the rare cases: ties of fences, predecessors, successors, descending
/// walks.
[[nodiscard]] Step visit_exactly(const MapView& map, Cursor& cursor, const NodeView& node,
                                 const NodeHead& head, wire::Ref ref);

/// The first half of a step: whether the node may answer. `child`: an interior node may; the child
/// is not chosen yet.
/// Requires: the node's header is at hand; its fences, where their key prefixes tie with the key's
/// and in descending walks (`needs_fences`).
[[nodiscard]] inline Step visit(const MapView& map, Cursor& cursor, const NodeView& node,
                                const NodeHead& head, wire::Ref ref) {
  if (cursor.goal != Goal::backward &&
      answers_by_head(map, cursor.key, as_of(map, cursor), node.bytes(), head, ref)) [[likely]] {
    return {head.leaf() ? StepKind::leaf : StepKind::child, ref, 0};
  }
  return visit_exactly(map, cursor, node, head, ref);
}

/// If a leaf is the expected one and ends before the key, its right neighbour, a hint, which a
/// split may have cut off it; else 0.
/// Requires: as `visit`.
[[nodiscard]] wire::Lid right_of_leaf(const MapView& map, const Cursor& cursor,
                                      const NodeView& node, const NodeHead& head, wire::Ref ref);

/// Whether a descending walk begins at the upper end of the key space.
[[nodiscard]] inline bool from_the_end(const Cursor& cursor) {
  return cursor.goal == Goal::backward && cursor.key.bytes() == 0;
}

/// Whether full fences decide if the node covers the key.
[[nodiscard]] inline bool needs_fences(const Cursor& cursor, const NodeHead& head) {
  return cursor.goal == Goal::backward || cursor.key.prefix() == head.low_key_prefix ||
         cursor.key.prefix() == head.high_key_prefix;
}

/// The second half: the child of an interior node to descend to.
/// Requires: the groups of the choice are at hand (in a descending walk from the end, the last
/// group), and the separators where they decide.
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

/// Descends from any node, or from the root, to the leaf that may answer, without waiting.
/// Requires: the region's bytes are local.
[[nodiscard]] wire::Ref find_leaf(const MapView& map, Cursor& cursor, wire::Ref ref);

}  // namespace espalier::tree
