// SPDX-License-Identifier: Apache-2.0
// Regular expressions for a store of this process. A library of its own, espalier::regex, has them:
// it links RE2 and, where it was built with it, Hyperscan, which a program that only uses maps need
// not have. Nodes always have them, so stores that are reached by connect() need nothing of this.
//
//     Store store = *Store::open({.regexes = regular_expressions()});
#pragma once

#include <memory>

namespace espalier {

namespace table {
class RegexCompiler;
}

/// What StoreOptions::regexes takes; several stores may have the same. It keeps the 256 patterns
/// used last, compiled.
///
/// Thread: any. Throws std::bad_alloc.
[[nodiscard]] std::shared_ptr<table::RegexCompiler> regular_expressions();

}  // namespace espalier
