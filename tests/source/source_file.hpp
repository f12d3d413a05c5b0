// SPDX-License-Identifier: Apache-2.0
// The project's sources for the rule checks: lines, and lines without comments and strings. Links
// nothing else of the project, so the checks run even if that does not build.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::source {

/// A source as text. `path` is relative to the root, with '/' between its parts.
struct SourceFile {
  std::string path;
  std::string text;
};

/// A violation of a rule.
struct Finding {
  std::string path;
  std::size_t line = 0;  ///< from 1
  std::string what;
};

/// "path:line: what", one a line, as compilers print it.
[[nodiscard]] std::string describe(const std::vector<Finding>& findings);

/// Reads all files with one of these endings under `folders` of `root`, in order of their paths.
/// Throws std::runtime_error if a file cannot be read.
[[nodiscard]] std::vector<SourceFile> read_sources(const std::filesystem::path& root,
                                                   const std::vector<std::string>& folders,
                                                   const std::vector<std::string>& endings);

/// Reads one file. Throws std::runtime_error if it cannot.
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text);

/// The text between the quotes of an #include "...", else nothing.
[[nodiscard]] std::string_view quoted_include(std::string_view line);

/// Replaces comments and the content of strings and character literals, raw ones too, by spaces.
/// Keeps line breaks, and so line numbers.
[[nodiscard]] std::string blank_comments_and_strings(std::string_view text);
/// The inverse: replaces all but comments and line breaks by spaces.
[[nodiscard]] std::string only_comments(std::string_view text);

}  // namespace espalier::source
