// SPDX-License-Identifier: Apache-2.0
// System calls are written ::read(), not read(): a project function of that name hides the other
// one in its namespace, and which sources see it depends on what is compiled together.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/source/source_file.hpp"

namespace espalier::source {

/// Reads lines of "header: name name ..."; lines that begin with '#' are comments. Throws
/// std::runtime_error at a line without names.
[[nodiscard]] std::set<std::string, std::less<>> parse_posix_names(std::string_view text);

/// Finds unqualified calls of functions with these names, if neither the file nor a header that it
/// includes, directly or through one other, declares such a function. Limits: it knows no types; a
/// local object of that name, made by a constructor, is taken for a declaration of a function.
[[nodiscard]] std::vector<Finding> check_posix_calls(
    const std::vector<SourceFile>& files, const std::set<std::string, std::less<>>& names);

}  // namespace espalier::source
