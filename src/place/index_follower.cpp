// SPDX-License-Identifier: Apache-2.0
#include "place/index_follower.hpp"

#include <utility>

#include "dataplane/table_changes.hpp"

namespace espalier::place {

Result<IndexFollower::Changes> IndexFollower::follow(const tree::MapView& map,
                                                     RegionSource& source) {
  const auto image = crawl(map, source, prefix_, base_);
  if (!image) return std::unexpected(image.error());
  auto tables = dataplane::compile(*image, limits_).tables;
  auto changes = dataplane::changes_between(tables_, tables, keys_.keyed);
  tables_ = std::move(tables);
  nodes_ = image->size();
  return changes;
}

}  // namespace espalier::place
