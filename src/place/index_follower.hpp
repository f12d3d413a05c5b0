// SPDX-License-Identifier: Apache-2.0
// Has the tables of switches follow a map: reads its tree, compiles it, and says what they are to
// be told.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/compiler.hpp"
#include "dataplane/installed_function.hpp"
#include "dataplane/packet_function.hpp"
#include "place/tree_crawl.hpp"

namespace espalier::place {

class IndexFollower {
 public:
  /// `prefix`: as in KeyedReads. `base`: where the addresses of the redirect key begin.
  IndexFollower(const dataplane::MapKeys& keys, std::string prefix, std::uint64_t base,
                const dataplane::TableLimits& limits)
      : keys_(keys), prefix_(std::move(prefix)), base_(base), limits_(limits) {}

  /// Entries that are others than after the last call; nothing: the tables are to be told whole.
  using Changes = std::optional<std::vector<dataplane::EntryChange>>;
  /// Reads and compiles the tree as it is now. `counts`: how often its leaves are read by now, or
  /// nothing. They are taken up where tables that are made for them send kGain more of all READs to
  /// their leaves than those made for the counts before, so that tables do not change their shape
  /// for each small change of the workload.
  /// Cost and errors: as crawl(); and compile()'s cost, with counts twice.
  Result<Changes> follow(const tree::MapView& map, RegionSource& source, LeafCounts counts = {});
  static constexpr double kGain = 0.02;

  [[nodiscard]] const dataplane::MapKeys& keys() const { return keys_; }
  /// Those of the last call; empty before.
  [[nodiscard]] const dataplane::IndexTables& tables() const { return tables_; }
  /// Nodes of the tree, leaves included, as the last call found it.
  [[nodiscard]] std::size_t nodes() const { return nodes_; }

 private:
  const dataplane::MapKeys keys_;
  const std::string prefix_;
  const std::uint64_t base_;
  const dataplane::TableLimits limits_;
  LeafCounts counts_;
  dataplane::IndexTables tables_;
  std::size_t nodes_ = 0;
};

}  // namespace espalier::place
