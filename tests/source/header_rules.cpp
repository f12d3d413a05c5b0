// SPDX-License-Identifier: Apache-2.0
#include "tests/source/header_rules.hpp"

#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include "tests/source/layer_rules.hpp"

namespace espalier::source {
namespace {

/// An include of a header of the project.
struct Include {
  std::size_t line = 0;
  std::string path;  // from the root
};

class Graph {
 public:
  explicit Graph(const std::vector<SourceFile>& files) {
    for (const SourceFile& file : files) includes_[file.path];
    for (const SourceFile& file : files) add(file);
  }

  [[nodiscard]] const std::vector<Include>& of(const std::string& path) const {
    return includes_.at(path);
  }
  /// How many headers of the project a header includes, directly or through others.
  [[nodiscard]] std::size_t behind(const std::string& header) const {
    std::set<std::string> found;
    collect(header, found);
    found.erase(header);
    return found.size();
  }

 private:
  void add(const SourceFile& file) {
    std::size_t number = 0;
    for (const std::string_view line : split_lines(file.text)) {
      ++number;
      const std::string_view included = quoted_include(line);
      for (const char* root : {"src/", "include/", ""}) {
        std::string path = root + std::string(included);
        if (included.empty() || !includes_.contains(path)) continue;
        includes_[file.path].push_back({number, std::move(path)});
        break;
      }
    }
  }
  void collect(const std::string& path, std::set<std::string>& found) const {
    for (const Include& include : of(path)) {
      if (found.insert(include.path).second) collect(include.path, found);
    }
  }

  std::map<std::string, std::vector<Include>, std::less<>> includes_;
};

bool is_source(std::string_view path) {
  return path.ends_with(".cpp") && !is_beside_a_source(path) && !path.contains("/tests/");
}

std::string complaint(std::size_t behind, std::size_t most, const char* what) {
  return std::to_string(behind) + " headers of the project lie behind it, and " + what +
         " may have " + std::to_string(most);
}

}  // namespace

bool serves_calls(const SourceFile& file) {
  static const std::regex takes_call(R"(\bCall& \w)");
  const bool may = file.path.starts_with("src/engine/") || file.path.starts_with("src/kinds/");
  return may && is_source(file.path) &&
         std::regex_search(blank_comments_and_strings(file.text), takes_call);
}

bool is_interface(std::string_view path) {
  constexpr std::string_view kChannel = "src/channel/";
  if (!path.ends_with(".hpp")) return false;
  if (path.starts_with("include/espalier/")) return true;
  return path.starts_with(kChannel) && !path.substr(kChannel.size()).contains('/');
}

bool makes_public_calls(const SourceFile& file) {
  constexpr std::string_view kChoosesAStore = "src/client/store.cpp";
  return file.path.starts_with("src/") && is_source(file.path) && file.path != kChoosesAStore &&
         file.text.contains("#include \"channel/public_call.hpp\"");
}

std::vector<Finding> check_headers_behind(const std::vector<SourceFile>& files,
                                          const HeadersBehind& most) {
  const Graph graph(files);
  std::vector<Finding> findings;
  const auto check_includes = [&](const SourceFile& file, std::size_t limit, const char* what) {
    for (const Include& include : graph.of(file.path)) {
      const std::size_t behind = graph.behind(include.path);
      if (behind <= limit) continue;
      findings.push_back({file.path, include.line,
                          "includes " + include.path + ": " + complaint(behind, limit, what)});
    }
  };
  for (const SourceFile& file : files) {
    if (serves_calls(file)) {
      check_includes(file, most.of_handlers, "what a handler of calls includes");
    }
    if (makes_public_calls(file)) {
      check_includes(file, most.of_interfaces, "an interface of the client");
    }
    if (is_interface(file.path)) {
      const std::size_t behind = graph.behind(file.path);
      if (behind <= most.of_interfaces) continue;
      findings.push_back(
          {file.path, 1, complaint(behind, most.of_interfaces, "an interface of the client")});
    }
  }
  return findings;
}

}  // namespace espalier::source
