// SPDX-License-Identifier: Apache-2.0
// Which file may include which: what layers.txt says, applied to every #include "...".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/source/source_file.hpp"

namespace espalier::source {

/// A line of layers.txt: files whose path has this prefix (whole parts of it) are of this module.
struct LayerRule {
  int layer = 0;
  std::string module;
  std::string prefix;
};

/// What layers.txt says. Of several rules that fit a file the longest prefix wins.
class Layers {
 public:
  /// Throws std::runtime_error at a line that is not "layer module prefix".
  static Layers parse(std::string_view text);
  /// Null where no rule covers the file.
  [[nodiscard]] const LayerRule* find(std::string_view path) const;

 private:
  std::vector<LayerRule> rules_;
};

/// Finds upward and sideways includes, includes of files that do not exist, and files that no layer
/// covers. A test, benchmark or fuzzer beside a source may include its own layer's other modules.
[[nodiscard]] std::vector<Finding> check_layers(const Layers& layers,
                                                const std::vector<SourceFile>& files);

}  // namespace espalier::source
