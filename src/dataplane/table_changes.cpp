// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table_changes.hpp"

#include <utility>

namespace espalier::dataplane {
namespace {

class Comparison {
 public:
  explicit Comparison(const TablesName& of) : of_(of) {}

  /// False: they differ in more than the address.
  bool add(const EntryPlace& place, const Way& from, const Way& to) {
    if (from.next != to.next) return false;
    if (from.address != to.address) changes_.push_back({of_.keyed, place, to.address, of_.node});
    return true;
  }
  bool add(std::uint32_t set, std::uint32_t number, const SetNode& from, const SetNode& to) {
    if (from.pivots != to.pivots || from.way_count != to.way_count) return false;
    for (std::uint32_t way = 0; way < to.way_count; ++way) {
      if (!add({set, number, way}, from.ways[way], to.ways[way])) return false;
    }
    return true;
  }
  bool add(const IndexTables& from, const IndexTables& to) {
    if (from.root != to.root || from.ways.size() != to.ways.size() ||
        from.sets.size() != to.sets.size() || from.beyond != to.beyond) {
      return false;
    }
    for (std::uint32_t way = 0; way < to.ways.size(); ++way) {
      if (!add({EntryPlace::kRoot, way, 0}, from.ways[way], to.ways[way])) return false;
    }
    for (std::uint32_t set = 0; set < to.sets.size(); ++set) {
      if (from.sets[set].size() != to.sets[set].size()) return false;
      for (std::uint32_t node = 0; node < to.sets[set].size(); ++node) {
        if (!add(set, node, from.sets[set][node], to.sets[set][node])) return false;
      }
    }
    return true;
  }
  [[nodiscard]] std::vector<EntryChange> changes() { return std::move(changes_); }

 private:
  const TablesName of_;
  std::vector<EntryChange> changes_;
};

}  // namespace

std::optional<std::vector<EntryChange>> changes_between(const IndexTables& from,
                                                        const IndexTables& to,
                                                        const TablesName& of) {
  Comparison comparison(of);
  if (!comparison.add(from, to)) return std::nullopt;
  return comparison.changes();
}

}  // namespace espalier::dataplane
