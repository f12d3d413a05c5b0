// SPDX-License-Identifier: Apache-2.0
// The TOML of a configuration file as a flat list, with lines. It knows TOML, and that settings
// stand in sections and maps in [[map]]; which there are, and what they may be, it does not know.
//
// Hostile text is refused or read: what the parser does not bear is kept from it
// (node/config_guard.hpp).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "node/config_value.hpp"

namespace espalier::node {

/// No configuration is longer.
inline constexpr std::size_t kFileBytesMax = std::size_t{1} << 18;

struct FileEntry {
  std::string key;
  Raw raw;
  std::size_t line = 0;  ///< from 1
};

/// The entries below [name], or of one [[map]].
struct FileSection {
  std::string name;
  std::size_t line = 0;
  std::vector<FileEntry> entries;
};

struct FileProblem {
  std::size_t line = 0;  ///< 0: the file as a whole
  std::string what;
  std::string hint;
};

/// Each list in the file's order.
struct FileContent {
  std::vector<FileEntry> loose;  ///< entries above all sections
  std::vector<FileSection> sections;
  std::vector<FileSection> maps;
  std::vector<FileProblem> problems;
};

/// Reads TOML 1.0. Text that is none gives one problem, and nothing else.
[[nodiscard]] FileContent read_toml(std::string_view text);

}  // namespace espalier::node
