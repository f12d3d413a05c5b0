// SPDX-License-Identifier: Apache-2.0
// Values whose bytes form leaves: a client can place them in the store's memory, so that a
// reference to there finds a live node of the right map, with the expected generation.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/scene.hpp"

namespace espalier::test {

/// The bytes of the leaf that has this key now, with `forged` in place of its `value`, which has
/// the same length. Empty: the value is not in it.
[[nodiscard]] std::string forged_leaf(const Scene& scene, std::string_view key,
                                      std::string_view value, std::string_view forged);

/// A value of so many bytes in which every block of its buffer is that image, with this generation,
/// except for the first block, where the header lies.
[[nodiscard]] std::string value_of_leaves(std::string image, std::uint32_t generation,
                                          std::size_t bytes);

/// Where the out-of-line value of a key lies.
[[nodiscard]] wire::Ref value_of(const Scene& scene, std::string_view key);

/// Reads and writes enter at every block of such a value, as through a client's hints. Returns what
/// is wrong; empty: nothing.
[[nodiscard]] std::string enter_at_forged_leaves();

/// A remote reader has kept references to nodes. The nodes are freed, and such values take all
/// memory. Returns what is wrong with its answers; empty: nothing.
[[nodiscard]] std::string keep_references_to_forged_leaves();

}  // namespace espalier::test
