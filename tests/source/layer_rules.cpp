// SPDX-License-Identifier: Apache-2.0
#include "tests/source/layer_rules.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <stdexcept>

namespace espalier::source {
namespace {

constexpr int kTopLayer = 99;  // what spans modules may include everything

bool covers(std::string_view prefix, std::string_view path) {
  return path.starts_with(prefix) &&
         (path.size() == prefix.size() || path[prefix.size()] == '/' || prefix.ends_with('/'));
}

bool is_test_support(std::string_view path) { return path.contains("/testing/"); }

std::string title(const LayerRule& rule) {
  std::string number = std::to_string(rule.layer);
  if (rule.room != 0) number += "." + std::to_string(rule.room);
  return rule.module + " (layer " + number + ")";
}

class Checker {
 public:
  Checker(const Layers& layers, const std::vector<SourceFile>& files)
      : layers_(layers), files_(files) {
    for (const SourceFile& file : files) paths_.insert(file.path);
  }

  std::vector<Finding> run() {
    for (const SourceFile& file : files_) check_file(file);
    return std::move(findings_);
  }

 private:
  void check_file(const SourceFile& file) {
    const LayerRule* own = layers_.find(file.path);
    if (own == nullptr) {
      findings_.push_back({file.path, 1, "no line of layers.txt covers this file"});
      return;
    }
    std::size_t number = 0;
    for (const std::string_view line : split_lines(file.text)) {
      ++number;
      const std::string_view included = quoted_include(line);
      if (included.empty()) continue;
      const std::string what = complaint_about(file.path, *own, included);
      if (!what.empty()) findings_.push_back({file.path, number, what});
    }
  }

  std::string complaint_about(const std::string& path, const LayerRule& own,
                              std::string_view included) const {
    const std::string shown = "includes \"" + std::string(included) + "\"";
    const std::string target = resolve(included);
    if (target.empty()) return shown + ", which is no file of src/, include/ or the root";
    const LayerRule* other = layers_.find(target);
    if (other == nullptr) return shown + ", which no line of layers.txt covers";
    if (is_test_support(target) && !is_beside_a_source(path) && own.layer != kTopLayer) {
      return shown + ", which is for tests alone";
    }
    if (other->module == own.module || own.layer == kTopLayer) return {};
    const bool same_layer = other->layer == own.layer;
    if (same_layer && is_beside_a_source(path)) return {};
    const bool rooms = same_layer && other->family() == own.family();
    if (rooms && other->room < own.room) return {};
    const bool upward = other->layer > own.layer || (rooms && other->room > own.room);
    const bool sideways = same_layer && !upward;
    if (!upward && !sideways) return {};
    return title(own) + " " + shown + " of " + title(*other) + (upward ? ": upward" : ": sideways");
  }

  [[nodiscard]] std::string resolve(std::string_view included) const {
    for (const char* root : {"src/", "include/", ""}) {
      std::string path = root + std::string(included);
      if (paths_.contains(path)) return path;
    }
    return {};
  }

  const Layers& layers_;
  const std::vector<SourceFile>& files_;
  std::set<std::string, std::less<>> paths_;
  std::vector<Finding> findings_;
};

}  // namespace

bool is_beside_a_source(std::string_view path) {
  return path.ends_with("_test.cpp") || path.ends_with("_bench.cpp") ||
         path.ends_with("_fuzz.cpp") || is_test_support(path);
}

Layers Layers::parse(std::string_view text) {
  Layers layers;
  for (const std::string_view line : split_lines(text)) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream fields{std::string(line)};
    LayerRule rule;
    char point = 0;
    std::string rest;
    bool good = static_cast<bool>(fields >> rule.layer);
    if (good && fields.peek() == '.') good = static_cast<bool>(fields >> point >> rule.room);
    if (!good || !(fields >> rule.module >> rule.prefix) || fields >> rest) {
      throw std::runtime_error("layers.txt: not \"layer[.room] module prefix\": " +
                               std::string(line));
    }
    layers.rules_.push_back(std::move(rule));
  }
  return layers;
}

const LayerRule* Layers::find(std::string_view path) const {
  const LayerRule* best = nullptr;
  for (const LayerRule& rule : rules_) {
    if (!covers(rule.prefix, path)) continue;
    if (best == nullptr || rule.prefix.size() > best->prefix.size()) best = &rule;
  }
  return best;
}

std::vector<Finding> check_layers(const Layers& layers, const std::vector<SourceFile>& files) {
  return Checker(layers, files).run();
}

}  // namespace espalier::source
