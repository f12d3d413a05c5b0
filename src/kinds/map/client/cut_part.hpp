// SPDX-License-Identifier: Apache-2.0
// The interface of a snapshot on one node that takes part in a cut: a set of snapshots on several
// nodes, all of one moment.
//
// Thread: one at a time.
#pragma once

#include <optional>

#include "espalier/types.hpp"

namespace espalier::client {

/// A snapshot on one node, as a cut needs it. Each begin needs its finish, unless it returned
/// false: the connection is lost.
class CutPart {
 public:
  virtual ~CutPart() = default;
  CutPart(const CutPart&) = delete;
  CutPart& operator=(const CutPart&) = delete;

  /// Releases its snapshot, if it has one; then it may be opened again.
  virtual void close() = 0;
  virtual bool begin_open() = 0;
  virtual Result<void> finish_open() = 0;
  /// The version of its snapshot.
  [[nodiscard]] virtual Version held_version() const = 0;
  /// Asks for the map's current read version.
  virtual bool begin_collect() = 0;
  virtual Result<Version> finish_collect() = 0;
  /// Has the node hold releases of the map for a short time. Errors: busy (too early for another
  /// hold), unsupported (an older node).
  virtual bool begin_hold() = 0;
  virtual Result<void> finish_hold() = 0;
  /// Ends that hold. Returns the read version during the hold; nothing: the hold had expired.
  virtual bool begin_confirm() = 0;
  virtual Result<std::optional<Version>> finish_confirm() = 0;

 protected:
  CutPart() = default;
};

}  // namespace espalier::client
