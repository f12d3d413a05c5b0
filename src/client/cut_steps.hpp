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
#include <optional>
#include <span>

#include "client/impl.hpp"

namespace espalier::client {

/// A snapshot on one node, as a cut needs it. Each begin has its finish; a begin that returns false
/// has none: the connection is lost.
class CutPart {
 public:
  virtual ~CutPart() = default;
  CutPart(const CutPart&) = delete;
  CutPart& operator=(const CutPart&) = delete;

  /// Lets its snapshot go, if it has one; then it may be opened again.
  virtual void close() = 0;
  virtual bool begin_open() = 0;
  virtual Result<void> finish_open() = 0;
  /// The version of its snapshot.
  [[nodiscard]] virtual Version held_version() const = 0;
  /// Asks for the version that readers of the map see now.
  virtual bool begin_collect() = 0;
  virtual Result<Version> finish_collect() = 0;
  /// Has the node hold releases of the map for a moment. Errors: busy (not yet again), unsupported
  /// (an older node).
  virtual bool begin_hold() = 0;
  virtual Result<void> finish_hold() = 0;
  /// Ends that hold. Returns the version that readers saw until then; nothing: it ended before.
  virtual bool begin_confirm() = 0;
  virtual Result<std::optional<Version>> finish_confirm() = 0;

 protected:
  CutPart() = default;
};

inline constexpr int kFreeTries = 3;

/// An error, and the part that met it.
using NameError = std::function<Error(const Error&, std::size_t part)>;

/// Opens all parts, of one moment. `go_on`: called after each try to hold all nodes that came to
/// nothing, before one without holds and the next with them; false: no more. Errors: of the parts,
/// as `name` has them; busy (no try came to anything).
[[nodiscard]] Result<void> cut_all(std::span<CutPart* const> parts, const NameError& name,
                                   const std::function<bool()>& go_on);

}  // namespace espalier::client
