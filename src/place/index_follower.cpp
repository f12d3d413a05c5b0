// SPDX-License-Identifier: Apache-2.0
#include "place/index_follower.hpp"

#include <utility>

#include "dataplane/hit_share.hpp"
#include "dataplane/table_changes.hpp"

namespace espalier::place {

Result<IndexFollower::Changes> IndexFollower::follow(const tree::MapView& map, RegionSource& source,
                                                     LeafCounts counts) {
  const auto tree = crawl(map, source);
  if (!tree) return std::unexpected(tree.error());
  auto image = tree->image(prefix_, base_, counts_);
  auto tables = dataplane::compile(image, limits_).tables;
  if (!counts.empty()) {
    image = tree->image(prefix_, base_, counts);
    auto better = dataplane::compile(image, limits_).tables;
    if (dataplane::hit_share(image, better) - dataplane::hit_share(image, tables) >= kGain) {
      counts_ = std::move(counts);
      tables = std::move(better);
    }
  }
  auto changes = dataplane::changes_between(tables_, tables, keys_.keyed);
  tables_ = std::move(tables);
  nodes_ = image.size();
  return changes;
}

}  // namespace espalier::place
