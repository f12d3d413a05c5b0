// SPDX-License-Identifier: Apache-2.0
// The record of writes that are on their way (tree/redo_record.hpp): written before locks are
// taken, for keys and values are known by then, and handed over with the version alone.
//
//   reserve, and write keys and values | lock | decide | take a version | hand over | publish
//
// So what is done under a leaf's lock does not grow with the value.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "catalog/redo_sink.hpp"

namespace espalier::tree {

class MapCore;
struct WriteIntent;

class WriteRedo {
 public:
  /// Of a map without a sink: there is no record.
  WriteRedo() = default;

  /// Of writes that will all take effect, or none. What they point to is copied; values out of line
  /// are read, so nobody may have published them. Errors: those of the map's sink.
  [[nodiscard]] static Result<WriteRedo> of_writes(const MapCore& map,
                                                   std::span<const WriteIntent> writes) noexcept;
  /// Of a change of structure that writes nothing. Errors: likewise.
  [[nodiscard]] static Result<WriteRedo> of_structure(const MapCore& map) noexcept;

  /// Hands it over; does nothing the second time, and where there is none.
  /// Requires: the caller has taken the version, has published nothing under it, and holds the
  /// locks of all leaves that it writes to.
  void hand_over(std::uint64_t version) noexcept;

 private:
  explicit WriteRedo(catalog::RedoRoom room) : room_(std::move(room)) {}

  catalog::RedoRoom room_;
};

}  // namespace espalier::tree
