// SPDX-License-Identifier: Apache-2.0
#include "dataplane/testing/p4_text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>
#include <utility>

#include "dataplane/p4_entries.hpp"

namespace espalier::dataplane {
namespace {

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find_last_not_of(kBlanks) + 1));
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    const std::string part = trimmed(text.substr(0, end));
    if (!part.empty()) parts.push_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// What stands between the next `open` and its `close`.
std::string_view between(std::string_view text, std::size_t from, char open, char close) {
  const std::size_t begin = text.find(open, from) + 1;
  int depth = 1;
  std::size_t end = begin;
  for (; end < text.size(); ++end) {
    if (text[end] == open) ++depth;
    if (text[end] == close && --depth == 0) break;
  }
  return text.substr(begin, end - begin);
}

// The width in "bit<N> name".
unsigned bits_of(std::string_view declaration) {
  const std::string_view digits = between(declaration, 0, '<', '>');
  unsigned bits = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  return bits;
}

// Widths of fields by their last name; no two of the program's that tables match on share one.
std::map<std::string, unsigned, std::less<>> read_fields(std::string_view text) {
  std::map<std::string, unsigned, std::less<>> fields;
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with("bit<")) continue;
    const std::size_t name = line.find("> ") + 2;
    const std::size_t end = line.find(';');
    if (end != std::string::npos) fields[line.substr(name, end - name)] = bits_of(line);
  }
  fields["ingress_port"] = 9;  // of v1model
  return fields;
}

P4Key read_key(const std::string& text,
               const std::map<std::string, unsigned, std::less<>>& fields) {
  const std::size_t colon = text.rfind(": ");
  P4Key key{text.substr(0, colon), text.substr(colon + 2), 0};
  const std::size_t slice = key.field.find('[');
  if (slice != std::string::npos) {
    const auto ends = split(between(key.field, slice, '[', ']'), ':');
    key.bits = static_cast<unsigned>(std::stoul(ends.at(0)) - std::stoul(ends.at(1)) + 1);
  } else {
    key.bits = fields.at(key.field.substr(key.field.rfind('.') + 1));
  }
  return key;
}

// A number in `0x`, no wider than so many bits.
bool read_number(std::string_view word, unsigned bits, std::uint64_t& into) {
  if (!word.starts_with("0x")) return false;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data() + 2, end, into, 16);
  return read.ec == std::errc() && read.ptr == end && (bits == 64 || into >> bits == 0);
}

std::string read_entry(const P4Program& program, const std::string& line, P4Entry& entry) {
  constexpr std::string_view kControl = "index_ingress.";
  std::istringstream words(line);
  std::string word;
  words >> word;
  if (word != "table_add") return "no table_add";
  words >> entry.table >> entry.action;
  if (!entry.table.starts_with(kControl) || !entry.action.starts_with(kControl)) return "control";
  entry.table.erase(0, kControl.size());
  entry.action.erase(0, kControl.size());
  const auto table = program.tables.find(entry.table);
  if (table == program.tables.end()) return "no table " + entry.table;
  if (std::ranges::count(table->second.actions, entry.action) == 0) return "no such action";
  bool has_range = false;
  for (const P4Key& key : table->second.keys) {
    std::uint64_t number = 0;
    words >> word;
    const std::size_t arrow = word.find("->");
    has_range = has_range || key.kind == "range";
    if ((arrow != std::string::npos) != (key.kind == "range")) return "a match of another kind";
    if (!read_number(std::string_view(word).substr(0, arrow), key.bits, number)) return "a match";
    entry.matches.push_back(number);
    if (arrow == std::string::npos) continue;
    if (!read_number(std::string_view(word).substr(arrow + 2), key.bits, number)) return "a range";
    entry.matches.push_back(number);
  }
  words >> word;
  if (word != "=>") return "more matches than keys";
  for (const unsigned bits : program.actions.at(entry.action)) {
    std::uint64_t number = 0;
    if (!(words >> word) || !read_number(word, bits, number)) return "what an action is given";
    entry.given.push_back(number);
  }
  if (has_range && (!(words >> word) || word != "1")) return "no priority";
  return words >> word ? "words too many" : "";
}

Way way_of_entry(const P4Entry& entry) {
  const bool leads = entry.given[1] != 0 || entry.given[2] != 0;
  return {entry.given[0], leads ? static_cast<std::uint32_t>(entry.given[3]) : kNoNode};
}

// Each node of the next switch's first set is led to.
void count_beyond(const P4Entry& entry, IndexTables& tables) {
  if (entry.given[2] == 0) return;
  tables.beyond = std::max(tables.beyond, static_cast<std::uint32_t>(entry.given[3]) + 1);
}

SetNode& node_at(IndexTables& tables, std::string_view table, std::uint64_t node) {
  const auto set = static_cast<std::size_t>(table[4] - '1');
  if (tables.sets.size() <= set) tables.sets.resize(set + 1);
  if (tables.sets[set].size() <= node) tables.sets[set].resize(node + 1);
  return tables.sets[set][node];
}

// How many ways a node has: those behind the last one repeat it.
std::uint32_t count_ways(const SetNode& node) {
  std::uint32_t count = 1;
  while (count < kWaysMax) {
    const bool filled = node.pivots[count - 1] == std::numeric_limits<std::uint64_t>::max();
    if (filled && node.ways[count] == node.ways[count - 1]) break;
    ++count;
  }
  return count;
}

// One entry, into the map that it is of.
void read_back(const P4Entry& entry, SwitchMap& map) {
  IndexTables& tables = map.tables;
  const auto match = [&entry](std::size_t i) {
    return static_cast<std::uint32_t>(entry.matches.at(i));
  };
  const auto given = [&entry](std::size_t i) {
    return static_cast<std::uint32_t>(entry.given.at(i));
  };
  if (entry.table == "maps") {
    map.keys = {match(0), given(1)};
    tables.root.preset = given(2);
    map.part = {given(3), static_cast<std::uint8_t>(given(4))};
  } else if (entry.table == "parts") {
    map.keys = {match(0), given(1)};
    map.part = {match(1), static_cast<std::uint8_t>(match(3) - 1)};
  } else if (entry.table == "fat_root_ways") {
    if (tables.ways.size() <= match(1)) tables.ways.resize(match(1) + 1);
    tables.ways[match(1)] = way_of_entry(entry);
    count_beyond(entry, tables);
  } else if (entry.table.starts_with("fat_root_")) {
    tables.root.stages.resize(kP4Stages);
    tables.root.stages[static_cast<std::size_t>(entry.table.back() - '1')].push_back(
        {match(1), static_cast<std::uint16_t>(match(2)), static_cast<std::uint16_t>(match(3)),
         given(1) != 0 ? given(2) : kDone, given(0)});
  } else if (entry.table.ends_with("_pivots")) {
    std::ranges::copy(entry.given, node_at(tables, entry.table, match(1)).pivots.begin());
  } else {
    node_at(tables, entry.table, match(1)).ways[match(2)] = way_of_entry(entry);
    count_beyond(entry, tables);
  }
}

}  // namespace

P4Program read_p4(std::string_view text) {
  P4Program program;
  const auto fields = read_fields(text);
  for (std::size_t at = 0; (at = text.find("\n    action ", at)) != std::string_view::npos; ++at) {
    const std::size_t name = at + 12;
    auto& bits = program.actions[std::string(text.substr(name, text.find('(', name) - name))];
    for (const std::string& given : split(between(text, name, '(', ')'), ',')) {
      bits.push_back(bits_of(given));
    }
  }
  for (std::size_t at = 0; (at = text.find("\n    table ", at)) != std::string_view::npos; ++at) {
    const std::size_t name = at + 11;
    P4Table& table = program.tables[std::string(text.substr(name, text.find(' ', name) - name))];
    const std::string_view body = between(text, name, '{', '}');
    for (const std::string& key : split(between(body, body.find("key = "), '{', '}'), ';')) {
      table.keys.push_back(read_key(key, fields));
    }
    table.actions = split(between(body, body.find("actions = "), '{', '}'), ';');
    constexpr std::string_view kSize = "size = ";
    if (const std::size_t size = body.find(kSize); size != std::string_view::npos) {
      const char* const digits = body.data() + size + kSize.size();
      std::from_chars(digits, body.data() + body.size(), table.size);
    }
  }
  return program;
}

std::string read_entries(const P4Program& program, std::string_view text,
                         std::vector<P4Entry>& into) {
  for (const std::string& line : split(text, '\n')) {
    const std::string wrong = read_entry(program, line, into.emplace_back());
    if (!wrong.empty()) return wrong + ": " + line;
  }
  return "";
}

std::optional<SwitchProgram> program_of(const std::vector<P4Entry>& entries) {
  struct Made {
    SwitchMap map;
    bool has_keys = false;
  };
  std::map<std::uint64_t, Made> made;
  for (const P4Entry& entry : entries) {
    const bool is_keys = entry.table == "maps" || entry.table == "parts";
    Made& one = made[is_keys ? entry.given.at(0) : entry.matches.at(0)];
    if (std::exchange(one.has_keys, is_keys)) return std::nullopt;
    read_back(entry, one.map);
  }
  SwitchProgram program;
  for (auto& [number, one] : made) {
    if (!one.map.tables.ways.empty()) one.map.tables.root.stages.resize(kP4Stages);
    for (NodeSet& set : one.map.tables.sets) {
      for (SetNode& node : set) node.way_count = count_ways(node);
    }
    if (!program.add(std::move(one.map))) return std::nullopt;
  }
  return program;
}

}  // namespace espalier::dataplane
