// SPDX-License-Identifier: Apache-2.0
// Regular expressions for a store of this process. They are a library of their own,
// espalier::regex, because it links RE2 and, if built with it, Hyperscan, which a program that only
// uses maps does not need. Nodes always have them: stores opened by connect() do not need this
// header.
//
//     Store store = *Store::open({.regexes = regular_expressions()});
#pragma once

#include <memory>

namespace espalier {

namespace table {
class RegexCompiler;
}

/// The value for StoreOptions::regexes; several stores may share one. It caches the 256 most
/// recently used patterns, compiled.
///
/// Thread: any. Throws std::bad_alloc.
[[nodiscard]] std::shared_ptr<table::RegexCompiler> regular_expressions();

}  // namespace espalier
