// SPDX-License-Identifier: Apache-2.0
#include "place/index_follower.hpp"

#include <utility>

#include "dataplane/hit_share.hpp"
#include "dataplane/table_changes.hpp"

namespace espalier::place {

Result<IndexFollower::Changes> IndexFollower::follow(const tree::MapView& map,
                                                     RegionSource& source) {
  const auto image = crawl(map, source, prefix_, base_, counts_);
  if (!image) return std::unexpected(image.error());
  auto tables = dataplane::compile(*image, limits_).tables;
  auto changes = dataplane::changes_between(tables_, tables, keys_.keyed);
  tables_ = std::move(tables);
  nodes_ = image->size();
  return changes;
}

Result<bool> IndexFollower::consider(const tree::MapView& map, RegionSource& source,
                                     LeafCounts counts) {
  if (counts.empty()) return false;  // nothing is read: what was known before is as good
  const auto image = crawl(map, source, prefix_, base_, counts);
  if (!image) return std::unexpected(image.error());
  const auto better = dataplane::compile(*image, limits_).tables;
  const double gain = dataplane::hit_share(*image, better) - dataplane::hit_share(*image, tables_);
  if (gain < kGain) return false;
  counts_ = std::move(counts);
  return true;
}

}  // namespace espalier::place
