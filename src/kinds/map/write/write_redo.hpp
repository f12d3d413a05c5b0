// SPDX-License-Identifier: Apache-2.0
// The log record of a write in progress (kinds/map/redo_record.hpp): written before locks are
// taken, when keys and values are known, and completed by the version when it is handed over.
//
//   reserve, and write keys and values | lock | decide | take a version | hand over | publish
//
// So the work under a leaf's lock does not depend on the size of the value.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "catalog/redo_sink.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"

namespace espalier::tree {

class MapCore;
struct Addition;
struct WriteIntent;

/// Progress of a write after its version was taken.
enum class RedoMoment : std::uint8_t {
  locked,    // nothing is published yet
  unlocked,  // its leaves are unlocked
  released,  // its version may be released
};

[[nodiscard]] inline bool is_handed_over_at(RedoMoment moment) {
  if (planted(Bug::record_outside_lock)) return moment == RedoMoment::unlocked;
  if (planted(Bug::record_after_release)) return moment == RedoMoment::released;
  return moment == RedoMoment::locked;
}

class WriteRedo {
 public:
  /// No record: the map has no sink.
  WriteRedo() = default;

  /// The record of writes that all take effect, or none. Copies what they point to; reads
  /// out-of-line values, so these must not be published yet. The sum of a single addition is copied
  /// at hand-over, since it is computed under the lock. Errors: those of the map's sink.
  [[nodiscard]] static Result<WriteRedo> of_writes(const MapCore& map,
                                                   std::span<const WriteIntent> writes) noexcept;
  /// Size of the record of these writes.
  [[nodiscard]] static std::size_t bytes_of(const MapCore& map,
                                            std::span<const WriteIntent> writes) noexcept;
  /// Writes the record, except the version, to `to`. Values as above.
  static void write(const MapCore& map, std::span<const WriteIntent> writes,
                    std::span<std::byte> to) noexcept;
  /// The record of a structure change without a write. Errors: likewise.
  [[nodiscard]] static Result<WriteRedo> of_structure(const MapCore& map) noexcept;

  /// Hands the record over; does nothing the second time, or without a record.
  /// Requires: the caller has taken the version, has published nothing under it, and holds the
  /// locks of all leaves that it writes to. Calls at later moments exist for planted bugs and
  /// otherwise do nothing.
  void hand_over(std::uint64_t version, RedoMoment moment = RedoMoment::locked) noexcept {
    if (room_ && is_handed_over_at(moment)) hand_over_now(version);
  }
  /// Position in the sink's order of the record that must be durable before the version is
  /// released; 0: none, or not handed over yet. For VersionClock::done().
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }

 private:
  WriteRedo(const MapCore& map, catalog::RedoRoom room);
  void hand_over_now(std::uint64_t version) noexcept;

  catalog::RedoRoom room_;
  bool answers_early_ = false;  // readers may see it before the record is durable
  const Addition* addition_ = nullptr;  // the record ends with its sum
  std::uint64_t sequence_ = 0;
};

}  // namespace espalier::tree
