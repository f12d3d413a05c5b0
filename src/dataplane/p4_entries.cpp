// SPDX-License-Identifier: Apache-2.0
#include "dataplane/p4_entries.hpp"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/hexadecimal.hpp"

namespace espalier::dataplane {
namespace {

constexpr std::string_view kPriority = " 1";
constexpr std::string_view kRangeAction = "index_ingress.take";

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
  /// `beyond`: where it leads on, it leads to the next switch.
  Writer& give(const Way& way, bool beyond) {
    const bool leads = way.next != kNoNode;
    give(way.address).give(leads && !beyond ? 1 : 0).give(leads && beyond ? 1 : 0);
    return give(leads ? way.next : 0);
  }
  /// Which entry counts where two match; here none do.
  Writer& priority() {
    text_ += kPriority;
    return *this;
  }
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
    writer.add("fat_root_ways", "set_way").match(map).match(i).then();
    writer.give(tables.ways[i], tables.sets.empty()).end();
  }
}

void write_set(Writer& writer, std::uint16_t map, std::size_t number, const IndexTables& tables) {
  const NodeSet& set = tables.sets[number - 1];
  const bool is_last = number == tables.sets.size();
  const std::string table = "set_" + std::to_string(number);
  for (std::size_t node = 0; node < set.size(); ++node) {
    writer.add(table + "_pivots", "compare").match(map).match(node).then();
    for (const std::uint64_t pivot : set[node].pivots) writer.give(pivot);
    writer.end();
    for (std::size_t child = 0; child < kWaysMax; ++child) {
      writer.add(table + "_ways", "set_way").match(map).match(node).match(child).then();
      writer.give(set[node].ways[child], is_last).end();
    }
  }
}

void write_map(Writer& writer, std::uint16_t number, const SwitchMap& map) {
  write_root(writer, number, map.tables);
  for (std::size_t set = 0; set < map.tables.sets.size(); ++set) {
    write_set(writer, number, set + 1, map.tables);
  }
  if (map.tables.ways.empty()) {
    writer.add("parts", "set_part").match(map.keys.keyed).match(map.part.generation);
    writer.match(0).match(map.part.hops + 1u).then().give(number).give(map.keys.redirect);
    writer.give(map.tables.sets.front().size()).end();
    return;
  }
  writer.add("maps", "set_map").match(map.keys.keyed).then();
  writer.give(number).give(map.keys.redirect).give(map.tables.root.preset);
  writer.give(map.part.generation).give(map.part.hops).end();
}

// What the tables of all maps take, and how much of it there is.
struct Use {
  std::string what;
  std::size_t wanted = 0;
  std::size_t there = 0;
};

std::vector<Use> uses_of(const SwitchProgram& program) {
  std::vector<Use> uses{{"maps", program.maps().size(), kP4Maps}, {"ranges", 0, kP4Ranges}};
  for (std::size_t stage = 0; stage < kP4Stages; ++stage) {
    uses.push_back(
        {"entries of stage " + std::to_string(stage + 1) + " of the fat root", 0, kP4StageEntries});
  }
  for (std::size_t set = 0; set < kP4Sets; ++set) {
    uses.push_back({"nodes of set " + std::to_string(set + 1), 0, kP4Nodes});
  }
  for (const SwitchMap& map : program.maps()) {
    uses[1].wanted += map.tables.ways.size();
    for (std::size_t stage = 0; stage < map.tables.root.stages.size(); ++stage) {
      uses[2 + stage].wanted += map.tables.root.stages[stage].size();
    }
    for (std::size_t set = 0; set < map.tables.sets.size(); ++set) {
      uses[2 + kP4Stages + set].wanted += map.tables.sets[set].size();
    }
  }
  return uses;
}

std::string what_does_not_fit(const SwitchProgram& program) {
  for (const SwitchMap& map : program.maps()) {
    if (map.keys.node != 0) return "tables of several nodes, and it leads to one";
    if (map.tables.sets.size() > kP4Sets) {
      return "tables of " + std::to_string(map.tables.sets.size()) +
             " sets of nodes, and there are " + std::to_string(kP4Sets);
    }
    const RangeTables& root = map.tables.root;
    if (map.tables.ways.empty()) continue;  // a part without a fat root
    if (root.stages.size() != kP4Stages || root.bits_per_stage != kP4BitsPerStage) {
      return "a fat root that is not of four stages of 16 bits";
    }
  }
  for (const Use& use : uses_of(program)) {
    if (use.wanted <= use.there) continue;
    return std::to_string(use.wanted) + " " + use.what + ", and there is room for " +
           std::to_string(use.there);
  }
  return "";
}

/// A line of entries, taken apart.
struct EntryLine {
  std::string_view table;
  std::string_view matched;  // from the table on: action and what is matched
  std::string_view action;
  std::string_view given;
};

// Takes the first line off.
EntryLine take_line(std::string_view& lines) {
  constexpr std::string_view kAdd = "table_add ";
  constexpr std::string_view kThen = " => ";
  const std::size_t end = lines.find('\n');
  std::string_view line = lines.substr(kAdd.size(), end - kAdd.size());
  lines.remove_prefix(end + 1);
  EntryLine made;
  const std::size_t then = line.find(kThen);
  made.matched = line.substr(0, then);
  made.given = line.substr(then + kThen.size());
  made.table = line.substr(0, line.find(' '));
  const std::string_view behind = line.substr(made.table.size() + 1);
  made.action = behind.substr(0, behind.find(' '));
  // The priority of a range is not given to its action.
  if (made.action == kRangeAction) made.given.remove_suffix(kPriority.size());
  return made;
}

// Every table that the program fills, the one first by which READs come to the others.
std::string clear_all() {
  std::string text;
  const auto clear = [&text](std::string_view table) {
    text.append("table_clear index_ingress.").append(table).append("\n");
  };
  clear("maps");
  clear("parts");
  for (std::size_t stage = 1; stage <= kP4Stages; ++stage) {
    clear("fat_root_" + std::to_string(stage));
  }
  clear("fat_root_ways");
  for (std::size_t set = 1; set <= kP4Sets; ++set) {
    clear("set_" + std::to_string(set) + "_pivots");
    clear("set_" + std::to_string(set) + "_ways");
  }
  return text;
}

}  // namespace

std::string p4_changes(std::string_view from, std::string_view to) {
  const std::string whole = clear_all().append(to);
  std::map<std::string_view, std::size_t> handles;
  std::string text;
  while (!from.empty() && !to.empty()) {
    const EntryLine before = take_line(from);
    const EntryLine after = take_line(to);
    if (before.matched != after.matched) return whole;
    const std::size_t handle = handles[after.table]++;
    if (before.given == after.given) continue;
    text.append("table_modify ").append(after.table).append(" ").append(after.action);
    text.append(" ").append(std::to_string(handle)).append(" ").append(after.given).append("\n");
  }
  return from.empty() && to.empty() ? text : whole;
}

std::expected<std::string, std::string> p4_entries(const SwitchProgram& program) {
  if (std::string fault = what_does_not_fit(program); !fault.empty()) {
    return std::unexpected(std::move(fault));
  }
  Writer writer;
  std::uint16_t number = 0;
  for (const SwitchMap& map : program.maps()) write_map(writer, number++, map);
  return writer.take();
}

}  // namespace espalier::dataplane
