// SPDX-License-Identifier: Apache-2.0
// File-local names of sources: sources of one folder and one target are compiled together, so their
// names must differ.
#pragma once

#include <vector>

#include "tests/source/source_file.hpp"

namespace espalier::source {

/// Finds names of unnamed namespaces, macros and using declarations that two sources of one folder
/// have in the same namespace with different meanings: tests, planted tests and others apart.
/// Limits: it relies on clang-format's layout, in which the line begins with the declaration's
/// first word in its first column. A name after a line break, as after a long return type, is not
/// found.
[[nodiscard]] std::vector<Finding> check_unity_names(const std::vector<SourceFile>& files);

}  // namespace espalier::source
