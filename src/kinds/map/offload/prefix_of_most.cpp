// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/prefix_of_most.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

constexpr std::size_t kEnough = 512;   // separators
constexpr std::size_t kTooFew = 16;    // of them, to derive a prefix
constexpr std::size_t kNodesMax = 64;  // nodes read per level

// The separators of the lowest level that has at most kNodesMax nodes, or of the first level that
// has enough of them. Requires: an exposed epoch; under concurrent changes some may be missing, or
// be of a replaced node.
std::vector<std::string> some_separators(const tree::MapCore& map) {
  std::vector<std::string> separators;
  std::vector<wire::Lid> level{map.root};
  while (level.size() <= kNodesMax && separators.size() < kEnough) {
    std::vector<std::string> found;
    std::vector<wire::Lid> below;
    for (const wire::Lid lid : level) {
      const wire::Ref ref = map.table.get(lid);
      if (!ref) continue;
      const tree::NodeView node = map.view(ref);
      if (node.leaf()) return separators;
      for (std::uint32_t i = 0; i < node.children(); ++i) {
        if (i != 0) found.emplace_back(node.separator(i));
        below.push_back(node.child(i));
      }
    }
    if (found.size() > separators.size()) separators = std::move(found);
    level = std::move(below);
  }
  return separators;
}

}  // namespace

std::string_view prefix_of_most(std::span<const std::string> keys) {
  const std::size_t most = (keys.size() * kPrefixOfEighths + 7) / 8;
  std::string_view longest;
  for (std::size_t i = 0; i + most <= keys.size(); ++i) {
    const std::string_view first = keys[i];
    const std::size_t shared = base::common_prefix_bytes(first, keys[i + most - 1]);
    if (shared > longest.size()) longest = first.substr(0, shared);
  }
  return longest;
}

std::string prefix_of_most(const tree::MapCore& map, std::string_view low, std::string_view high,
                           base::EpochSlot& slot) {
  slot.enter();
  std::vector<std::string> separators = some_separators(map);
  slot.exit();
  if (separators.size() < kTooFew) {
    return std::string(low.substr(0, base::common_prefix_bytes(low, high)));
  }
  std::ranges::sort(separators);
  return std::string(prefix_of_most(separators));
}

}  // namespace espalier::offload
