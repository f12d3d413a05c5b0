// SPDX-License-Identifier: Apache-2.0
#include "tests/source/unity_names.hpp"

#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace espalier::source {
namespace {

/// A name, and what determines whether another source's is the same: what a using declaration
/// names, or the source.
struct OwnName {
  std::string name;
  std::string meaning;
};

/// What a line of an unnamed namespace declares; empty: nothing.
std::string declared_in(std::string line) {
  static const std::regex attribute(R"(^\[\[\w+\]\] )");
  static const std::regex no_declaration(
      R"(^(namespace|template|requires|return|case|extern|friend|static_assert|)"
      R"(using (namespace|enum)|public|private|protected)\b)");
  static const std::regex rest(R"(( : | final\b|[(={;\[]).*$)");  // behind the name
  static const std::regex name(R"([ &*](\w+) *$)");
  line = std::regex_replace(line, attribute, "");
  if (line.front() == '#' || std::regex_search(line, no_declaration)) return {};
  line = std::regex_replace(line, rest, "");
  std::smatch found;
  if (!std::regex_search(line, found, name) || found[1] == "operator") return {};
  return found[1];
}

/// Sources with the same are compiled together, but for programs of one source, which have none.
std::string batch_of(std::string_view path) {
  for (const char* alone : {"_fuzz.cpp", "_bench.cpp", "/main.cpp"}) {
    if (path.ends_with(alone)) return {};
  }
  std::string batch(path.substr(0, path.rfind('/')));
  if (path.ends_with("_planted_test.cpp")) return batch + " planted tests";
  return path.ends_with("_test.cpp") ? batch + " tests" : batch;
}

/// Calls `see(space, name, line)` for each name that a source has for itself.
template <class See>
void each_own_name(const SourceFile& file, const See& see) {
  static const std::regex opened(R"(^namespace ([\w:]+) \{)");
  static const std::regex used(R"(^using (enum )?(?:::)?([\w:]+::(\w+));)");
  static const std::regex macro(R"(^#define (\w+))");
  const std::vector<std::string_view> texts = split_lines(file.text);
  const std::string code = blank_comments_and_strings(file.text);
  std::string space;
  bool unnamed = false;
  std::size_t number = 0;
  for (const std::string_view blanked : split_lines(code)) {
    if (blanked.empty() || blanked.front() == ' ') {
      ++number;
      continue;
    }
    const std::string line(blanked);
    std::smatch found;
    unnamed = (unnamed || line.starts_with("namespace {")) && texts[number] != "}  // namespace";
    ++number;
    if (std::regex_search(line, found, opened)) {
      space = found[1];
    } else if (std::regex_search(line, found, macro)) {
      see(std::string(), OwnName{found[1], file.path}, number);
    } else if (std::regex_search(line, found, used)) {
      see(space, OwnName{found[3], found[2]}, number);
    } else if (unnamed) {
      if (std::string name = declared_in(line); !name.empty()) {
        see(space, OwnName{std::move(name), file.path}, number);
      }
    }
  }
}

}  // namespace

std::vector<Finding> check_unity_names(const std::vector<SourceFile>& files) {
  std::map<std::string, std::pair<std::string, OwnName>> known;  // where it is declared
  std::vector<Finding> findings;
  for (const SourceFile& file : files) {
    const std::string batch = batch_of(file.path);
    if (batch.empty()) continue;
    each_own_name(file, [&](const std::string& space, OwnName own, std::size_t line) {
      const std::string key = batch + " " + space + " " + own.name;
      const auto [entry, added] = known.try_emplace(key, file.path, own);
      if (added || entry->second.first == file.path) return;
      if (entry->second.second.meaning == own.meaning) return;
      findings.push_back({file.path, line, own.name + " is also in " + entry->second.first});
    });
  }
  return findings;
}

}  // namespace espalier::source
