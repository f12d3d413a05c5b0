// SPDX-License-Identifier: Apache-2.0
// The style rules that a machine can check.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/source/source_file.hpp"

namespace espalier::source {

inline constexpr std::size_t kLineColumnsMax = 100;
inline constexpr std::size_t kFunctionLinesMax = 70;
inline constexpr std::size_t kFileLinesMax = 600;

/// A function as the check finds it, by its braces: a lambda outside functions counts as one, and
/// one inside a function as part of it.
struct FunctionSpan {
  std::size_t first_line = 0;  ///< where its declaration begins
  std::size_t last_line = 0;   ///< of the closing brace
  [[nodiscard]] std::size_t lines() const { return last_line - first_line + 1; }
};

/// Finds the function bodies in C++ text. Limits: macros are not expanded and preprocessor lines
/// are skipped, so braces must balance with all branches of an #if in place; a body opens at the
/// first brace after a parenthesis outside any other function, so a namespace-scope initialiser
/// with a call counts as a function.
[[nodiscard]] std::vector<FunctionSpan> find_functions(std::string_view text);

/// Finds lines over 100 columns (counted in characters, not bytes), tabs, trailing blanks, a
/// missing licence line in the first two, words that mark unfinished work. For any kind of source.
[[nodiscard]] std::vector<Finding> check_text(const SourceFile& file);

/// Finds long functions, long files without a reason in `long_files`, `using namespace` in headers,
/// headers without #pragma once, and calls that make a run irreproducible. For C++.
[[nodiscard]] std::vector<Finding> check_code(
    const SourceFile& file, const std::map<std::string, std::string>& long_files);

/// Finds identifiers in `refused`, each a word, also with a trailing underscore. Comments and
/// strings may have them. For C++ and C.
[[nodiscard]] std::vector<Finding> check_names(const SourceFile& file,
                                               const std::map<std::string, std::string>& refused);

/// Finds words of comments that are in `refused`, which has them in lower case. For C++ and C.
[[nodiscard]] std::vector<Finding> check_comment_words(
    const SourceFile& file, const std::map<std::string, std::string>& refused);

/// Reads lines of "path: reason"; lines that begin with '#' are comments. Throws std::runtime_error
/// at a line without a reason.
[[nodiscard]] std::map<std::string, std::string> parse_reasons(std::string_view text);

}  // namespace espalier::source
