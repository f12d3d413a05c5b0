// SPDX-License-Identifier: Apache-2.0
#include "dataplane/switch_program.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "dataplane/text_numbers.hpp"
#include "dataplane/text_reader.hpp"

namespace espalier::dataplane {
namespace {

constexpr std::string_view kProgramTitle = "espalier-switch 1";

/// A map's part of a text: its keys, and where its tables begin.
struct Section {
  MapKeys keys;
  TablesPart part;
  HintTerms hints;
  std::size_t line = 0;   // behind that of the keys
  std::size_t begin = 0;  // of the tables
};

std::unexpected<TextFault> refuse(std::size_t line, std::string reason) {
  return std::unexpected(TextFault{line, std::move(reason)});
}

bool read_map_line(TextReader& reader, Section& section) {
  if (!reader.number(section.keys.keyed, 16) || !reader.number(section.keys.redirect, 16)) {
    return false;
  }
  if (reader.at_end()) return true;
  if (!reader.number(section.part.generation, 16) || !reader.number(section.part.hops)) {
    return false;
  }
  return reader.at_end() || (reader.number(section.keys.node) && reader.at_end());
}

// Two digits for each byte; "-" for none.
bool read_prefix(std::string_view word, std::string& prefix) {
  if (word == "-") return true;
  if (word.empty() || word.size() % 2 != 0 || word.size() / 2 > wire::kDatagramKeyBytesMax) {
    return false;
  }
  for (std::size_t i = 0; i < word.size(); i += 2) {
    std::uint8_t byte = 0;
    const char* const end = word.data() + i + 2;
    const auto read = std::from_chars(word.data() + i, end, byte, 16);
    if (read.ec != std::errc() || read.ptr != end) return false;
    prefix += static_cast<char>(byte);
  }
  return true;
}

bool read_hints_line(TextReader& reader, Section& section) {
  HintTerms& hints = section.hints;
  if (hints.map != 0 || !reader.number(hints.map) || hints.map == 0) return false;
  return reader.number(hints.base, 16) && read_prefix(reader.word(), hints.prefix) &&
         reader.at_end();
}

void put_hints(std::string& text, const HintTerms& hints) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  text += "hints";
  put_word(text, hints.map);
  put_word(text, hints.base, 16);
  text += hints.prefix.empty() ? " -" : " ";
  for (const char c : hints.prefix) {
    const auto byte = static_cast<std::uint8_t>(c);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  text += '\n';
}

bool exists(const IndexTables& tables, const EntryPlace& place) {
  if (place.set == EntryPlace::kRoot) return place.node < tables.ways.size();
  if (place.set >= tables.sets.size()) return false;
  const NodeSet& set = tables.sets[place.set];
  return place.node < set.size() && place.way < set[place.node].way_count;
}

}  // namespace

std::expected<SwitchProgram, TextFault> SwitchProgram::parse(std::string_view text) {
  TextReader reader(text);
  if (!reader.next_line() || reader.word() != "espalier-switch" || reader.word() != "1" ||
      !reader.at_end()) {
    return refuse(reader.number(), "the text does not begin with 'espalier-switch 1'");
  }
  SwitchProgram program;
  std::optional<Section> section;
  // Takes the section that ends here.
  const auto take = [&](std::size_t end) -> std::expected<void, TextFault> {
    if (!section) return {};
    auto tables = parse_tables(text.substr(section->begin, end - section->begin));
    if (!tables) {
      TextFault fault = std::move(tables.error());
      fault.line += section->line;
      return std::unexpected(std::move(fault));
    }
    if (!program.add(
            {section->keys, *std::move(tables), section->part, std::move(section->hints)})) {
      return refuse(section->line,
                    "a map has this key already at this node, or there are more than 64 maps");
    }
    return {};
  };
  while (reader.next_line()) {
    const std::string_view word = reader.word();
    const bool is_map = word == "map";
    if (section && word == "hints" && reader.line_begin() == section->begin) {
      if (!read_hints_line(reader, *section)) {
        return refuse(reader.number(),
                      "wanted: hints MAP BASE PREFIX, the number of a map, an address, and bytes "
                      "in hexadecimal or -");
      }
      section->line = reader.number();
      section->begin = reader.line_end();
      continue;
    }
    if (!is_map && section) continue;  // of its tables
    if (!is_map) return refuse(reader.number(), "wanted: map KEYED REDIRECT");
    if (auto taken = take(reader.line_begin()); !taken) return std::unexpected(taken.error());
    section.emplace();
    if (!read_map_line(reader, *section)) {
      return refuse(reader.number(),
                    "wanted: map KEYED REDIRECT [GENERATION HOPS [NODE]], numbers of 32 bits, of "
                    "8, and of 16");
    }
    section->line = reader.number();
    section->begin = reader.line_end();
  }
  if (auto taken = take(text.size()); !taken) return std::unexpected(taken.error());
  return program;
}

std::string SwitchProgram::text() const {
  std::string text(kProgramTitle);
  text += '\n';
  for (const SwitchMap& map : maps_) {
    text += "map";
    put_word(text, map.keys.keyed, 16);
    put_word(text, map.keys.redirect, 16);
    if (map.part != TablesPart{} || map.keys.node != 0) {
      put_word(text, map.part.generation, 16);
      put_word(text, map.part.hops);
    }
    if (map.keys.node != 0) put_word(text, map.keys.node);
    text += '\n';
    if (map.hints.map != 0) put_hints(text, map.hints);
    text += to_text(map.tables);
  }
  return text;
}

bool SwitchProgram::add(SwitchMap map) {
  const bool known = std::ranges::any_of(
      maps_, [&](const SwitchMap& other) { return other.keys.name() == map.keys.name(); });
  if (known || maps_.size() == kMapsMax) return false;
  maps_.push_back(std::move(map));
  return true;
}

void SwitchProgram::remove(const TablesName& name) {
  std::erase_if(maps_, [&](const SwitchMap& map) { return map.keys.name() == name; });
}

PacketFunction SwitchProgram::function() const {
  PacketFunction function;
  for (const SwitchMap& map : maps_) {
    function.add(map.keys, map.tables, map.part, map.hints);
  }
  return function;
}

std::expected<std::vector<EntryChange>, TextFault> SwitchProgram::parse_changes(
    std::string_view text) const {
  TextReader reader(text);
  std::vector<EntryChange> changes;
  while (reader.next_line()) {
    EntryChange change;
    bool good = reader.word() == "change" && reader.number(change.keyed_key, 16);
    std::string_view where = reader.word();
    if (where == "node") {
      good = good && reader.number(change.node);
      where = reader.word();
    }
    if (where == "way") {
      good = good && reader.number(change.place.node);
    } else {
      good = good && where == "set" && reader.number(change.place.set) &&
             change.place.set != EntryPlace::kRoot && reader.number(change.place.node) &&
             reader.number(change.place.way);
    }
    if (!good || !reader.number(change.address, 16) || !reader.at_end()) {
      return refuse(reader.number(),
                    "wanted: change KEYED [node NODE] way RANGE ADDRESS, or change KEYED "
                    "[node NODE] set SET NODE WAY ADDRESS");
    }
    const auto map = std::ranges::find_if(
        maps_, [&](const SwitchMap& each) { return each.keys.name() == change.name(); });
    if (map == maps_.end()) return refuse(reader.number(), "there is no map of this key");
    if (!exists(map->tables, change.place))
      return refuse(reader.number(), "there is no such entry");
    changes.push_back(change);
  }
  return changes;
}

void SwitchProgram::make(std::span<const EntryChange> changes) {
  for (const EntryChange& change : changes) {
    const auto map = std::ranges::find_if(
        maps_, [&](const SwitchMap& each) { return each.keys.name() == change.name(); });
    set_address(map->tables, change.place, change.address);
  }
}

std::string to_text(std::span<const EntryChange> changes) {
  std::string text;
  for (const EntryChange& change : changes) {
    text += "change";
    put_word(text, change.keyed_key, 16);
    if (change.node != 0) {
      text += " node";
      put_word(text, change.node);
    }
    if (change.place.set == EntryPlace::kRoot) {
      text += " way";
      put_word(text, change.place.node, 10);
    } else {
      text += " set";
      put_word(text, change.place.set, 10);
      put_word(text, change.place.node, 10);
      put_word(text, change.place.way, 10);
    }
    put_word(text, change.address, 16);
    text += '\n';
  }
  return text;
}

}  // namespace espalier::dataplane
