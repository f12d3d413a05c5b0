// SPDX-License-Identifier: Apache-2.0
#include "node/config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "node/config_guard.hpp"
#include "node/config_text.hpp"

namespace {
/// Text such as "[!]" can trigger the parser's assertions; without assertions that is undefined
/// behaviour. So they throw what is caught below.
struct ParserGaveUp {};

constexpr void require_of_parser(bool holds) {
  if (!holds) throw ParserGaveUp{};
}
}  // namespace

// Included in this file alone, since it takes seconds to compile. Header-only, so that sanitizers
// and fuzzers instrument it.
#define TOML_ASSERT(expression) require_of_parser(static_cast<bool>(expression))
#undef NDEBUG  // with it the parser assumes what it asserts
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_UNRELEASED_FEATURES 0
#include <toml++/toml.h>

namespace espalier::node {
namespace {

std::size_t line_of(const toml::source_region& source) { return source.begin.line; }

Raw raw_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string: return **node.as_string();
    case toml::node_type::integer: return **node.as_integer();
    case toml::node_type::boolean: return **node.as_boolean();
    case toml::node_type::floating_point: return Other{"a number with a fraction"};
    case toml::node_type::date: return Other{"a date"};
    case toml::node_type::time: return Other{"a time"};
    case toml::node_type::date_time: return Other{"a date with a time"};
    case toml::node_type::array: return Other{"an array"};
    case toml::node_type::table: return Other{"a table"};
    case toml::node_type::none: break;
  }
  return Other{"nothing"};
}

FileSection section_of(std::string_view name, std::size_t line, const toml::table& table) {
  FileSection section{std::string(name), line, {}};
  for (const auto& [key, node] : table) {
    section.entries.push_back({std::string(key.str()), raw_of(node), line_of(key.source())});
  }
  std::ranges::sort(section.entries, {}, &FileEntry::line);
  return section;
}

void read_maps(const toml::key& key, const toml::node& node, FileContent& content) {
  const toml::array* const array = node.as_array();
  if (array == nullptr || array->empty()) {
    content.problems.push_back({line_of(key.source()),
                                array == nullptr ? "map is no array of tables" : "map is empty",
                                "give each map a [[map]] of its own, with its name below"});
    return;
  }
  for (const toml::node& item : *array) {
    if (const toml::table* const table = item.as_table()) {
      content.maps.push_back(section_of(key.str(), line_of(item.source()), *table));
    } else {
      content.problems.push_back(
          {line_of(item.source()),
           fmt::format("a map cannot be {}", std::holds_alternative<Other>(raw_of(item))
                                                 ? std::get<Other>(raw_of(item)).what
                                                 : "a plain value"),
           "give each map a [[map]] of its own, with its name below"});
    }
  }
}

void read_document(const toml::table& document, FileContent& content) {
  for (const auto& [key, node] : document) {
    if (key.str() == "map") {
      read_maps(key, node, content);
    } else if (const toml::table* const table = node.as_table()) {
      content.sections.push_back(section_of(key.str(), line_of(key.source()), *table));
    } else {
      content.loose.push_back({std::string(key.str()), raw_of(node), line_of(key.source())});
    }
  }
  std::ranges::sort(content.loose, {}, &FileEntry::line);
  std::ranges::sort(content.sections, {}, &FileSection::line);
}

bool gives_up(std::string_view text) {
  try {
    static_cast<void>(toml::parse(text));
  } catch (const ParserGaveUp&) {
    return true;
  } catch (const toml::parse_error&) {
    // A prefix may also fail because it is cut in the middle of something.
  }
  return false;
}

/// The line at which the parser fails, as it does for every text with the lines up to this one.
/// Cost: parses O(log n) times, for n lines.
std::size_t find_line(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') ends.push_back(at + 1);
  }
  const auto good = [&](std::size_t end) { return !gives_up(text.substr(0, end)); };
  return 1 + static_cast<std::size_t>(std::ranges::partition_point(ends, good) - ends.begin());
}

FileContent no_toml(std::size_t line, std::string what) {
  FileContent content;
  content.problems.push_back({line, std::move(what), "correct the line; see https://toml.io"});
  return content;
}

}  // namespace

FileContent read_toml(std::string_view text) {
  FileContent content;
  if (text.size() > kFileBytesMax) {
    content.problems.push_back({0, fmt::format("is longer than {} bytes", kFileBytesMax),
                                "name a configuration file, which is a few lines of TOML"});
    return content;
  }
  const auto guarded = guard_toml(text);
  if (!guarded) return no_toml(guarded.error().line, guarded.error().what);
  try {
    read_document(toml::parse(std::string_view(*guarded)), content);
  } catch (const toml::parse_error& error) {
    return no_toml(line_of(error.source()), "is not TOML: " + printable(error.description()));
  } catch (const ParserGaveUp&) {
    return no_toml(find_line(*guarded), "is not TOML");
  }
  return content;
}

}  // namespace espalier::node
