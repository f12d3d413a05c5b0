// SPDX-License-Identifier: Apache-2.0
// Keeps switch tables up to date with a map: reads the map's tree, compiles it, and computes the
// changes to send to switches. If the map's mapping feed reports that leaves have moved, only their
// entries change.
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
  /// `prefix`: as in KeyedReads. `base`: the first address of the redirect key.
  IndexFollower(const dataplane::MapKeys& keys, std::string prefix, std::uint64_t base,
                const dataplane::TableLimits& limits)
      : keys_(keys), prefix_(std::move(prefix)), base_(base), limits_(limits) {}

  /// Changed entries since the last call; nothing: the tables must be installed whole.
  using Changes = std::optional<std::vector<dataplane::EntryChange>>;
  /// Reads the current tree; discards moves that were reported before. Cost and errors: as crawl().
  Result<void> read(const tree::MapView& map, RegionSource& source);
  /// Applies a move that the mapping feed reports. Returns false if the tree must be read: it has
  /// another shape now, or was never read. Cost: constant; linear on the first call after
  /// compiling.
  bool moved(const MappingChange& change);
  /// Returns what has changed since the last call: compiles the tree if it was read since, else
  /// returns the entries of moved leaves. `counts`: how often its leaves are read by now, or empty.
  /// New counts replace the earlier ones if the tables compiled for them send kGain more of all
  /// READs directly to leaves; so the tables do not change shape for each small change of the
  /// workload. Cost: compile()'s if the tree was read, twice that with counts; else linear in the
  /// moves. Requires: the tree was read once.
  [[nodiscard]] Changes changes(LeafCounts counts = {});
  /// Whether changes() would compile.
  [[nodiscard]] bool compiles(const LeafCounts& counts) const {
    return !compiled_ || !counts.empty();
  }
  /// For callers that compile the trees of several nodes together. image(): the tree as it was
  /// read. take(): replaces the tables, and returns what has changed. Cost: linear. Requires: the
  /// tree was read once.
  [[nodiscard]] dataplane::TreeImage image() const { return tree_->image(prefix_, base_, counts_); }
  Changes take(const dataplane::TreeImage& image, dataplane::IndexTables tables);
  /// Switches the tables to another redirect key, whose first address is `base`; they must then be
  /// installed whole. Cost: linear.
  void begin_generation(std::uint32_t redirect, std::uint64_t base);
  /// The counts that these keys would lead to, by the tree that was read. Requires: it was read
  /// once.
  [[nodiscard]] LeafCounts count(std::span<const std::string> keys) const {
    return tree_->count(keys);
  }
  /// read() and changes().
  Result<Changes> follow(const tree::MapView& map, RegionSource& source, LeafCounts counts = {});
  static constexpr double kGain = 0.02;
  /// After a change of the tree's shape, tables keep their own shape while they cost on average
  /// fewer than kLoss READs more than newly compiled ones: then entries can be changed one by one,
  /// while a new generation invalidates all that a switch has.
  static constexpr double kLoss = 0.05;

  [[nodiscard]] const dataplane::MapKeys& keys() const { return keys_; }
  /// The tables of the last call; empty before.
  [[nodiscard]] const dataplane::IndexTables& tables() const { return tables_; }
  /// Nodes of the tree, leaves included, at the last compilation.
  [[nodiscard]] std::size_t nodes() const { return nodes_; }

 private:
  Changes compile(LeafCounts counts);
  void find_places();

  dataplane::MapKeys keys_;
  const std::string prefix_;
  std::uint64_t base_;
  const dataplane::TableLimits limits_;
  LeafCounts counts_;
  dataplane::IndexTables tables_;  // as switches have them
  std::size_t nodes_ = 0;
  std::optional<CrawledTree> tree_;
  bool compiled_ = false;  // tables_ are of tree_, but for moves_
  std::vector<CrawledTree::Move> moves_;
  // The entries that name an address; empty, or of all addresses.
  std::unordered_map<std::uint64_t, std::vector<dataplane::EntryPlace>> places_;
};

}  // namespace espalier::place
