// SPDX-License-Identifier: Apache-2.0
// Parses the TOML of a configuration file into a flat list, with lines. It knows TOML, and that
// settings are in sections and maps in [[map]], but no setting's name or limits.
//
// Hostile text is rejected or read: the guard keeps from the parser what it cannot handle
// (node/config_guard.hpp).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "node/config_value.hpp"

namespace espalier::node {

/// Most bytes of a configuration.
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

/// Reads TOML 1.0. Invalid TOML gives one problem, and nothing else.
[[nodiscard]] FileContent read_toml(std::string_view text);

}  // namespace espalier::node
