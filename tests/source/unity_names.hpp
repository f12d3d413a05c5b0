// SPDX-License-Identifier: Apache-2.0
// File-local names of sources: sources of one folder and one target are compiled together, so their
// names must differ.
#pragma once

#include <vector>

#include "tests/source/source_file.hpp"

namespace espalier::source {

/// Names of unnamed namespaces, macros and using declarations that two sources of one folder have
/// in the same namespace, and do not mean the same by: tests, planted tests and others apart.
/// Limits: it sees what clang-format lays out, a line that begins with the declaration's first word
/// in its first column. A name behind a line break, as behind a long return type, is not seen.
[[nodiscard]] std::vector<Finding> check_unity_names(const std::vector<SourceFile>& files);

}  // namespace espalier::source
