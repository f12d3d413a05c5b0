// SPDX-License-Identifier: Apache-2.0
// Which file may include which: applies layers.txt to every #include "...".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/source/source_file.hpp"

namespace espalier::source {

/// A line of layers.txt: files whose path has this prefix (whole parts of it) belong to this
/// module. Rooms of one module (`tree/node`, `tree/walk`) have an order of their own within its
/// layer, after a point: 4.1 lies below 4.2.
struct LayerRule {
  int layer = 0;
  int room = 0;
  std::string module;
  std::string prefix;
  /// The module without its room.
  [[nodiscard]] std::string_view family() const {
    return std::string_view(module).substr(0, module.find('/'));
  }
};

/// The content of layers.txt. Of several rules for a file the longest prefix wins.
class Layers {
 public:
  /// Throws std::runtime_error at a line that is not "layer[.room] module prefix".
  static Layers parse(std::string_view text);
  /// Null if no rule covers the file.
  [[nodiscard]] const LayerRule* find(std::string_view path) const;

 private:
  std::vector<LayerRule> rules_;
};

/// Whether a file is a test, a benchmark or a fuzzer, or is included only by these.
[[nodiscard]] bool is_beside_a_source(std::string_view path);

/// Finds upward and sideways includes, includes of missing files, files without a layer, and test
/// support (a folder `testing`) that other files than tests include. A test, benchmark or fuzzer
/// beside a source, and test support, may include their own layer's other modules and rooms.
[[nodiscard]] std::vector<Finding> check_layers(const Layers& layers,
                                                const std::vector<SourceFile>& files);

}  // namespace espalier::source
