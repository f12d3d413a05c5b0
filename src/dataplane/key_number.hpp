// SPDX-License-Identifier: Apache-2.0
// Normalised key prefixes: keys of any length as the numbers of 64 bits that tables compare. The
// common prefix of all keys of a map is left out, the next 8 bytes are the number, big-endian, and
// a shorter key is padded with zeros. The order of keys is kept, but different keys may share a
// number.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dataplane/tree_image.hpp"

namespace espalier::dataplane {

/// The number of a key of which `prefix` is left out. A key that does not begin with it has 0 or
/// the largest number, whichever keeps the order. Cost: linear in the prefix.
[[nodiscard]] std::uint64_t key_number(std::string_view prefix, std::string_view key);

/// How many bytes all of these keys share at their beginning. Cost: linear.
[[nodiscard]] std::size_t shared_prefix(std::span<const std::string_view> keys);

/// Which numbers lead to which child.
struct Branches {
  std::vector<std::uint64_t> separators;
  std::vector<NodeNumber> children;
};

/// The branches of a node whose separators are keys. Where a number does not determine on which
/// side of a separator its keys lie, they stay at the node (kHere); a child all of whose keys do so
/// has no branch. Requires: keys ascending, one less than children. Cost: linear.
[[nodiscard]] Branches number_branches(std::string_view prefix,
                                       std::span<const std::string_view> separators,
                                       std::span<const NodeNumber> children);

}  // namespace espalier::dataplane
