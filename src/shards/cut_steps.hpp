// SPDX-License-Identifier: Apache-2.0
// How snapshots of several nodes come to be of one moment: the steps, over whatever a node is, so
// that tests can put writes between any two of them (sharded_cut.hpp has the nodes).
//
// Each node has read versions of its own, which only rise. A snapshot is opened on each of them,
// and then each is asked for its read version once more: if all are still those of the snapshots,
// they were so together at the moment between, and the snapshots are what was there then. Of those
// that have moved on, new ones are opened, and all are asked again (docs/design/shards.md).
//
// Where writes always come between, each node is asked to hold releases for a moment, and snapshots
// are opened meanwhile. The hold is believed no more than a guess: what counts is, as before, that
// each node tells in the end that its hold stood until then, and the version of its snapshot.
//
// Invariants
// 1. What was begun on a part is finished before anything else is begun on it, whatever others say.
// 2. Each hold that was granted is ended, unless its connection is lost.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "kinds/map/client/cut_part.hpp"

namespace espalier::client {

inline constexpr int kFreeTries = 3;

/// An error, and the part that met it.
using NameError = std::function<Error(const Error&, std::size_t part)>;

/// Opens all parts, of one moment. `go_on`: called after each try to hold all nodes that came to
/// nothing, before one without holds and the next with them; false: no more. Errors: of the parts,
/// as `name` has them; busy (no try came to anything).
[[nodiscard]] Result<void> cut_all(std::span<CutPart* const> parts, const NameError& name,
                                   const std::function<bool()>& go_on);

}  // namespace espalier::client
