// SPDX-License-Identifier: Apache-2.0
// Has the tables of switches follow a map: reads its tree, compiles it, and says what they are to
// be told. Where the map's mapping feed says that leaves have moved, their entries alone change.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dataplane/compiler.hpp"
#include "dataplane/installed_function.hpp"
#include "dataplane/packet_function.hpp"
#include "index/tree_crawl.hpp"
#include "kinds/map/remote/feed_cursor.hpp"

namespace espalier::place {

class IndexFollower {
 public:
  /// `prefix`: as in KeyedReads. `base`: where the addresses of the redirect key begin.
  IndexFollower(const dataplane::MapKeys& keys, std::string prefix, std::uint64_t base,
                const dataplane::TableLimits& limits)
      : keys_(keys), prefix_(std::move(prefix)), base_(base), limits_(limits) {}

  /// Entries that are others than after the last call; nothing: the tables are to be told whole.
  using Changes = std::optional<std::vector<dataplane::EntryChange>>;
  /// Reads the tree as it is now; moves that were told before are forgotten. Cost and errors: as
  /// crawl().
  Result<void> read(const tree::MapView& map, RegionSource& source);
  /// The mapping feed says that a node has moved. Returns false if the tree has another shape now,
  /// or was not read yet: it is to be read. Cost: constant; linear the first time after compiling.
  bool moved(const MappingChange& change);
  /// Says what is new since the last call: of a tree that was read since, compiled; else the
  /// entries of leaves that have moved. `counts`: how often its leaves are read by now, or nothing.
  /// They are taken up where tables that are made for them send kGain more of all READs to their
  /// leaves than those made for the counts before, so that tables do not change their shape for
  /// each small change of the workload. Cost: compile()'s where the tree was read, twice with
  /// counts; else linear in what has moved. Requires: it was read once.
  [[nodiscard]] Changes changes(LeafCounts counts = {});
  /// Whether changes() would compile.
  [[nodiscard]] bool compiles(const LeafCounts& counts) const {
    return !compiled_ || !counts.empty();
  }
  /// For whoever compiles the trees of several nodes together: the tree as it was read, and what is
  /// new where these tables of it take the place of those before. Cost: linear. Requires: it was
  /// read once.
  [[nodiscard]] dataplane::TreeImage image() const { return tree_->image(prefix_, base_, counts_); }
  Changes take(const dataplane::TreeImage& image, dataplane::IndexTables tables);
  /// Tables are to be told whole by another redirect key, whose addresses begin at `base`. Cost:
  /// linear.
  void begin_generation(std::uint32_t redirect, std::uint64_t base);
  /// What those keys would count, by the tree that was read. Requires: it was read once.
  [[nodiscard]] LeafCounts count(std::span<const std::string> keys) const {
    return tree_->count(keys);
  }
  /// Both, of the tree as it is now.
  Result<Changes> follow(const tree::MapView& map, RegionSource& source, LeafCounts counts = {});
  static constexpr double kGain = 0.02;
  /// Where the tree has another shape, tables keep theirs as long as that costs fewer READs than so
  /// many, on average, more than tables of this tree would: entries can be told one by one, and a
  /// new generation makes all void that a switch has.
  static constexpr double kLoss = 0.05;

  [[nodiscard]] const dataplane::MapKeys& keys() const { return keys_; }
  /// Those of the last call; empty before.
  [[nodiscard]] const dataplane::IndexTables& tables() const { return tables_; }
  /// Nodes of the tree, leaves included, as the last call found it.
  [[nodiscard]] std::size_t nodes() const { return nodes_; }

 private:
  Changes compile(LeafCounts counts);
  void find_places();

  dataplane::MapKeys keys_;
  const std::string prefix_;
  std::uint64_t base_;
  const dataplane::TableLimits limits_;
  LeafCounts counts_;
  dataplane::IndexTables tables_;  // as switches were told
  std::size_t nodes_ = 0;
  std::optional<CrawledTree> tree_;
  bool compiled_ = false;  // tables_ are of tree_, but for what has moved since
  std::vector<CrawledTree::Move> moves_;
  // Which entries name an address; empty, or of all.
  std::unordered_map<std::uint64_t, std::vector<dataplane::EntryPlace>> places_;
};

}  // namespace espalier::place
