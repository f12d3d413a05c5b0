// SPDX-License-Identifier: Apache-2.0
// The prefix that most keys of a map share, so that key numbers of the 8 bytes behind it
// distinguish them (dataplane/key_number.hpp): a few keys with another prefix do not shorten it for
// all.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/epoch.hpp"
#include "kinds/map/write/map_core.hpp"

namespace espalier::offload {

/// Of 8 keys, this many must have the prefix.
inline constexpr std::size_t kPrefixOfEighths = 7;

/// The longest prefix of at least that share of these keys. Cost: linear. Requires: at least one
/// key, sorted.
[[nodiscard]] std::string_view prefix_of_most(std::span<const std::string> keys);

/// The same for a map, by the separators of its tree: each stands for about equally many keys. With
/// too few separators, the common prefix of the lowest and the highest key. Cost: reads some
/// hundred separators in at most 64 nodes. Requires: `slot` is of the map's store, and unused by
/// any thread.
[[nodiscard]] std::string prefix_of_most(const tree::MapCore& map, std::string_view low,
                                         std::string_view high, base::EpochSlot& slot);

}  // namespace espalier::offload
