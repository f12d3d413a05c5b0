// SPDX-License-Identifier: Apache-2.0
// Builds interior nodes: key prefixes of the children in groups of 16, and full separators behind
// them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kinds/map/node/leaf_builder.hpp"

namespace espalier::tree {

/// A child and its low separator. The first child's separator is the node's low fence.
struct Child {
  std::string_view separator;
  wire::Lid lid = 0;
};

/// Appends the children of an interior node; the first gets the node's low fence as separator.
void gather_children(const NodeView& node, std::vector<Child>& children);

/// Whether these children fit one node with these fences.
[[nodiscard]] bool interior_fits(const Geometry& g, std::span<const Child> children,
                                 std::string_view low, std::string_view high);

/// Bytes that these children take, without fences.
[[nodiscard]] std::uint64_t interior_bytes(const Geometry& g, std::span<const Child> children);

/// Lays out an interior node in `buffer`. Walkers reject the buffer until go_live().
/// Requires: interior_fits, level >= 1.
void build_interior(std::byte* buffer, const Geometry& g, std::uint32_t level,
                    std::span<const Child> children, const NodeFrame& frame);

/// The shortest key s with left < s <= right: the separator of two leaves.
[[nodiscard]] std::string_view shortest_separator(std::string_view left, std::string_view right);

}  // namespace espalier::tree
