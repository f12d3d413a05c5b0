// SPDX-License-Identifier: Apache-2.0
#include "index/index_follower.hpp"

#include <utility>

#include "base/assert.hpp"
#include "dataplane/hit_share.hpp"
#include "dataplane/planted_dataplane_bugs.hpp"
#include "dataplane/retarget.hpp"
#include "dataplane/table_changes.hpp"

namespace espalier::place {

using dataplane::EntryChange;
using dataplane::EntryPlace;

Result<void> IndexFollower::read(const tree::MapView& map, RegionSource& source) {
  auto tree = crawl(map, source);
  if (!tree) return std::unexpected(tree.error());
  tree_ = std::move(*tree);
  compiled_ = false;
  moves_.clear();
  return {};
}

bool IndexFollower::moved(const MappingChange& change) {
  if (!tree_) return false;
  CrawledTree::Move move;
  switch (tree_->move(change.lid, change.ref, move)) {
    case CrawledTree::Moved::nothing: break;
    case CrawledTree::Moved::leaf:
      if (!base::planted(dataplane::Bug::moved_leaf_kept)) moves_.push_back(move);
      break;
    case CrawledTree::Moved::shape: return false;
  }
  return true;
}

// An entry that several moves changed is named as often: the last one counts.
IndexFollower::Changes IndexFollower::changes(LeafCounts counts) {
  ESPALIER_ASSERT(tree_);
  if (compiles(counts)) return compile(std::move(counts));
  std::vector<EntryChange> changes;
  if (moves_.empty()) return changes;
  if (places_.empty()) find_places();
  for (const CrawledTree::Move& move : std::exchange(moves_, {})) {
    auto found = places_.extract(base_ + move.from);
    if (found.empty()) continue;
    const std::uint64_t address = base_ + move.to;
    for (const EntryPlace& place : found.mapped()) {
      dataplane::set_address(tables_, place, address);
      changes.push_back({keys_.keyed, place, address, keys_.node});
    }
    auto& there = places_[address];
    there.insert(there.end(), found.mapped().begin(), found.mapped().end());
  }
  return changes;
}

IndexFollower::Changes IndexFollower::compile(LeafCounts counts) {
  auto image = tree_->image(prefix_, base_, counts_);
  auto tables = dataplane::compile(image, limits_).tables;
  if (!counts.empty()) {
    image = tree_->image(prefix_, base_, counts);
    auto better = dataplane::compile(image, limits_).tables;
    if (dataplane::hit_share(image, better) - dataplane::hit_share(image, tables) >= kGain) {
      counts_ = std::move(counts);
      tables = std::move(better);
    }
  }
  // Tables of the shape that switches have go on as long as they are nearly as good.
  if (!tables_.ways.empty()) {
    auto kept = dataplane::retargeted(tables_, image);
    if (dataplane::reads_left(image, kept) - dataplane::reads_left(image, tables) < kLoss) {
      tables = std::move(kept);
    }
  }
  return take(image, std::move(tables));
}

IndexFollower::Changes IndexFollower::take(const dataplane::TreeImage& image,
                                           dataplane::IndexTables tables) {
  auto changes = dataplane::changes_between(tables_, tables, keys_.name());
  tables_ = std::move(tables);
  nodes_ = image.size();
  compiled_ = true;
  moves_.clear();
  places_.clear();
  return changes;
}

void IndexFollower::begin_generation(std::uint32_t redirect, std::uint64_t base) {
  const std::uint64_t by = base - base_;
  for (dataplane::Way& way : tables_.ways) way.address += by;
  for (dataplane::NodeSet& set : tables_.sets) {
    for (dataplane::SetNode& node : set) {
      for (dataplane::Way& way : node.ways) way.address += by;
    }
  }
  keys_.redirect = redirect;
  base_ = base;
  places_.clear();
}

void IndexFollower::find_places() {
  for (std::uint32_t way = 0; way < tables_.ways.size(); ++way) {
    places_[tables_.ways[way].address].push_back({EntryPlace::kRoot, way, 0});
  }
  for (std::uint32_t set = 0; set < tables_.sets.size(); ++set) {
    for (std::uint32_t node = 0; node < tables_.sets[set].size(); ++node) {
      const dataplane::SetNode& of = tables_.sets[set][node];
      for (std::uint32_t way = 0; way < of.way_count; ++way) {
        places_[of.ways[way].address].push_back({set, node, way});
      }
    }
  }
}

Result<IndexFollower::Changes> IndexFollower::follow(const tree::MapView& map, RegionSource& source,
                                                     LeafCounts counts) {
  if (const auto come = read(map, source); !come) return std::unexpected(come.error());
  return changes(std::move(counts));
}

}  // namespace espalier::place
