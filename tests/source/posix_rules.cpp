// SPDX-License-Identifier: Apache-2.0
#include "tests/source/posix_rules.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <stdexcept>

namespace espalier::source {
namespace {

using Names = std::set<std::string, std::less<>>;

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Words before which an expression begins, though they look like a type.
bool is_keyword(std::string_view word) {
  static const Names words = {"return", "co_return", "co_await", "co_yield", "throw",
                              "case",   "else",      "do",       "new"};
  return words.contains(word);
}

std::string_view without_blanks_at_end(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

/// The word that ends the text, which has no blanks at its end.
std::string_view last_word(std::string_view text) {
  std::size_t begin = text.size();
  while (begin != 0 && in_name(text[begin - 1])) --begin;
  return text.substr(begin);
}

/// How a name is used at one place.
enum class Use : std::uint8_t {
  other,
  function,   ///< declared, or defined, as a function
  automatic,  ///< a variable of deduced type, which may be a lambda
  member,     ///< some other variable
  call,
  initialiser,  ///< a call, or the initialiser of a member
};

/// `before` and `behind` are the code around the name.
Use use_of(std::string_view before, std::string_view behind) {
  const bool blank =
      !before.empty() && std::isspace(static_cast<unsigned char>(before.back())) != 0;
  before = without_blanks_at_end(before);
  while (!behind.empty() && behind.front() == ' ') behind.remove_prefix(1);
  const bool called = behind.starts_with('(');
  if (before.ends_with('.') || before.ends_with("->") || before.ends_with('~')) return Use::other;
  if (before.ends_with("::")) {  // of a class, which is defined here; or of a namespace
    before.remove_suffix(2);
    return called && !last_word(before).empty() ? Use::function : Use::other;
  }
  // By the project's format the & and * of a type follow it without a blank.
  std::string_view type = before;
  while (type.ends_with('&') || type.ends_with('*')) type.remove_suffix(1);
  const std::string_view word = last_word(type);
  const bool typed = blank && ((!word.empty() && !is_keyword(word)) || type.ends_with('>'));
  if (typed && !before.ends_with("->")) {
    if (called) return Use::function;
    return word == "auto" ? Use::automatic : Use::member;
  }
  if (!called) return Use::other;
  const bool listed = before.ends_with(',') || before.ends_with(':');
  return listed ? Use::initialiser : Use::call;
}

struct Place {
  std::size_t line = 0;
  std::string name;
  Use use = Use::other;
};

/// Every use of one of the names that matters here.
std::vector<Place> uses_in(const SourceFile& file, const Names& names) {
  const std::string code = blank_comments_and_strings(file.text);
  const std::string_view text = code;
  std::vector<Place> places;
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size();) {
    if (!in_name(text[at])) {
      line += text[at] == '\n' ? 1 : 0;
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && in_name(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    if (names.contains(word)) {
      const Use use = use_of(text.substr(0, at), text.substr(end));
      if (use != Use::other) places.push_back({line, std::string(word), use});
    }
    at = end;
  }
  return places;
}

std::vector<std::string> includes_of(const SourceFile& file) {
  constexpr std::string_view kInclude = "#include \"";
  std::vector<std::string> included;
  for (std::string_view line : split_lines(file.text)) {
    if (!line.starts_with(kInclude)) continue;
    line.remove_prefix(kInclude.size());
    included.emplace_back(line.substr(0, line.find('"')));
  }
  return included;
}

/// What the rule knows of a file.
struct Known {
  std::vector<Place> places;
  std::vector<const Known*> includes;
  Names functions, automatics, members;
};

class Sources {
 public:
  Sources(const std::vector<SourceFile>& files, const Names& names) {
    for (const SourceFile& file : files) {
      Known& known = files_[file.path];
      known.places = uses_in(file, names);
      for (const Place& place : known.places) {
        if (place.use == Use::function) known.functions.insert(place.name);
        if (place.use == Use::automatic) known.automatics.insert(place.name);
        if (place.use == Use::member) known.members.insert(place.name);
      }
    }
    for (const SourceFile& file : files) {
      for (const std::string& path : includes_of(file)) add_include(files_[file.path], path);
    }
  }

  [[nodiscard]] const Known& at(const std::string& path) const { return files_.at(path); }

 private:
  void add_include(Known& from, const std::string& path) const {
    for (const char* folder : {"src/", "include/", ""}) {
      const auto found = files_.find(folder + path);
      if (found == files_.end()) continue;
      from.includes.push_back(&found->second);
      return;
    }
  }

  std::map<std::string, Known, std::less<>> files_;
};

bool is_declared(const Known& file, const Place& call) {
  if (file.functions.contains(call.name) || file.automatics.contains(call.name)) return true;
  if (call.use == Use::initialiser && file.members.contains(call.name)) return true;
  return std::ranges::any_of(file.includes, [&](const Known* header) {
    return header->functions.contains(call.name) ||
           (call.use == Use::initialiser && header->members.contains(call.name)) ||
           std::ranges::any_of(header->includes, [&](const Known* below) {
             return below->functions.contains(call.name);
           });
  });
}

}  // namespace

Names parse_posix_names(std::string_view text) {
  Names names;
  for (const std::string_view line : split_lines(text)) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos || colon + 2 == line.size()) {
      throw std::runtime_error("not \"header: name ...\": " + std::string(line));
    }
    std::string_view rest = line.substr(colon + 2);
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (end != 0) names.emplace(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return names;
}

std::vector<Finding> check_posix_calls(const std::vector<SourceFile>& files, const Names& names) {
  const Sources sources(files, names);
  std::vector<Finding> findings;
  for (const SourceFile& file : files) {
    const Known& known = sources.at(file.path);
    for (const Place& place : known.places) {
      if (place.use != Use::call && place.use != Use::initialiser) continue;
      if (is_declared(known, place)) continue;
      findings.push_back({file.path, place.line,
                          place.name + "() of the operating system; write ::" + place.name + "()"});
    }
  }
  return findings;
}

}  // namespace espalier::source
