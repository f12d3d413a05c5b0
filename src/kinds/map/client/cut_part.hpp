// SPDX-License-Identifier: Apache-2.0
// What a snapshot on one node does for a cut, by which snapshots of several nodes come to be of one
// moment.
//
// Thread: one at a time.
#pragma once

#include <optional>

#include "espalier/types.hpp"

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

}  // namespace espalier::client
