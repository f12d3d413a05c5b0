// SPDX-License-Identifier: Apache-2.0
#include "dataplane/p4_entries.hpp"

#include <initializer_list>
#include <string_view>

#include "base/assert.hpp"
#include "dataplane/hexadecimal.hpp"

namespace espalier::dataplane {
namespace {

// Lines of one table after another.
class Writer {
 public:
  /// Begins a line.
  Writer& add(std::string_view table, std::string_view action) {
    text_ += "table_add index_ingress.";
    text_ += table;
    text_ += " index_ingress.";
    text_ += action;
    return *this;
  }
  Writer& match(std::uint64_t number) { return word(hexadecimal(number)); }
  Writer& match_range(std::uint64_t first, std::uint64_t last) {
    return word(hexadecimal(first) + "->" + hexadecimal(last));
  }
  /// Goes from what is matched to what the action is given.
  Writer& then() { return word("=>"); }
  Writer& give(std::uint64_t number) { return word(hexadecimal(number)); }
  Writer& give(const Way& way) {
    const bool leads = way.next != kNoNode;
    return give(way.address).give(leads ? 1 : 0).give(leads ? way.next : 0);
  }
  /// Which entry counts where two match; here none do.
  Writer& priority() { return word("1"); }
  void end() { text_ += '\n'; }

  std::string take() { return std::move(text_); }

 private:
  Writer& word(std::string_view of) {
    text_ += ' ';
    text_ += of;
    return *this;
  }

  std::string text_;
};

void write_root(Writer& writer, std::uint16_t map, const IndexTables& tables) {
  std::size_t stage = 0;
  for (const auto& entries : tables.root.stages) {
    const std::string table = "fat_root_" + std::to_string(++stage);
    for (const RangeEntry& entry : entries) {
      const bool leads = entry.next != kDone;
      writer.add(table, "take").match(map).match(entry.table).match_range(entry.first, entry.last);
      writer.then().give(entry.result).give(leads ? 1 : 0).give(leads ? entry.next : 0);
      writer.priority().end();
    }
  }
  for (std::size_t i = 0; i < tables.ways.size(); ++i) {
    writer.add("fat_root_ways", "set_way").match(map).match(i).then().give(tables.ways[i]).end();
  }
}

void write_set(Writer& writer, std::uint16_t map, std::size_t number, const NodeSet& set) {
  const std::string table = "set_" + std::to_string(number);
  for (std::size_t node = 0; node < set.size(); ++node) {
    writer.add(table + "_pivots", "compare").match(map).match(node).then();
    for (const std::uint64_t pivot : set[node].pivots) writer.give(pivot);
    writer.end();
    for (std::size_t child = 0; child < kWaysMax; ++child) {
      writer.add(table + "_ways", "set_way").match(map).match(node).match(child).then();
      writer.give(set[node].ways[child]).end();
    }
  }
}

}  // namespace

bool fits_p4(const IndexTables& tables) {
  return tables.sets.size() <= kP4Sets && tables.root.stages.size() == kP4Stages &&
         tables.root.bits_per_stage == kP4BitsPerStage;
}

std::string p4_entries(std::uint16_t map, const MapKeys& keys, const IndexTables& tables) {
  ESPALIER_ASSERT(fits_p4(tables));
  Writer writer;
  writer.add("maps", "set_map").match(keys.keyed).then();
  writer.give(map).give(keys.redirect).give(tables.root.preset).end();
  write_root(writer, map, tables);
  for (std::size_t set = 0; set < tables.sets.size(); ++set) {
    write_set(writer, map, set + 1, tables.sets[set]);
  }
  return writer.take();
}

}  // namespace espalier::dataplane
