// SPDX-License-Identifier: Apache-2.0
// Consistent cuts: the steps that make snapshots of several nodes belong to one moment, over an
// abstract node, so that tests can insert writes between any two steps (sharded_cut.hpp has the
// nodes).
//
// Each node has its own read version, which only rises. Open a snapshot on each node, then ask each
// for its read version again: if all still equal those of the snapshots, they were all current at
// the moment in between, so the snapshots show one moment. Where a version has moved on, open new
// snapshots, and ask all again (docs/design/shards.md).
//
// If writes always interfere, ask each node to hold releases for a moment, and open snapshots
// meanwhile. A hold is not trusted either: in the end each node must confirm that its hold stood
// until then, and the version of its snapshot.
//
// Invariants
// 1. A request begun on a part is finished before another one begins on it, whatever happens on
//    others.
// 2. Each granted hold is ended, unless its connection is lost.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "kinds/map/client/cut_part.hpp"

namespace espalier::client {

inline constexpr int kFreeTries = 3;

/// An error, and the part where it occurred.
using NameError = std::function<Error(const Error&, std::size_t part)>;

/// Opens all parts as of one moment. `go_on`: called after each failed try to hold all nodes,
/// before one without holds and the next with them; false: stop. Errors: of the parts, as `name`
/// returns them; busy (every try failed).
[[nodiscard]] Result<void> cut_all(std::span<CutPart* const> parts, const NameError& name,
                                   const std::function<bool()>& go_on);

}  // namespace espalier::client
