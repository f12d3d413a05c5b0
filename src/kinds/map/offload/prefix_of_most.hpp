// SPDX-License-Identifier: Apache-2.0
// What most keys of a map begin with, so that numbers of 8 bytes behind it tell them apart
// (dataplane/key_number.hpp): a few keys that begin otherwise do not shorten it for all.
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

/// So many of 8 keys begin with it.
inline constexpr std::size_t kPrefixOfEighths = 7;

/// The longest string that so many of these begin with, at least. Cost: linear. Requires: some, in
/// order.
[[nodiscard]] std::string_view prefix_of_most(std::span<const std::string> keys);

/// The same of a map, by the separators of its tree: each stands for about as many keys. Where
/// there are too few of them, what the lowest and the highest key share. Cost: of some hundreds of
/// separators; at most 64 nodes are read. Requires: a slot of the store's, which no thread uses.
[[nodiscard]] std::string prefix_of_most(const tree::MapCore& map, std::string_view low,
                                         std::string_view high, base::EpochSlot& slot);

}  // namespace espalier::offload
