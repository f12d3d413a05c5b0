// SPDX-License-Identifier: Apache-2.0
// The record of writes that are on their way (kinds/map/redo_record.hpp): written before locks are
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
#include "kinds/map/node/planted_tree_bugs.hpp"

namespace espalier::tree {

class MapCore;
struct Addition;
struct WriteIntent;

/// How far a write is, whose version was taken.
enum class RedoMoment : std::uint8_t {
  locked,    // nothing is published
  unlocked,  // its leaves are
  released,  // its version may be
};

[[nodiscard]] inline bool is_handed_over_at(RedoMoment moment) {
  if (planted(Bug::record_outside_lock)) return moment == RedoMoment::unlocked;
  if (planted(Bug::record_after_release)) return moment == RedoMoment::released;
  return moment == RedoMoment::locked;
}

class WriteRedo {
 public:
  /// Of a map without a sink: there is no record.
  WriteRedo() = default;

  /// Of writes that will all take effect, or none. What they point to is copied; values out of line
  /// are read, so they are not published yet. The sum of a single write that adds is copied when it
  /// is handed over, for it is made under the lock. Errors: those of the map's sink.
  [[nodiscard]] static Result<WriteRedo> of_writes(const MapCore& map,
                                                   std::span<const WriteIntent> writes) noexcept;
  /// Bytes of the record of these writes.
  [[nodiscard]] static std::size_t bytes_of(const MapCore& map,
                                            std::span<const WriteIntent> writes) noexcept;
  /// Writes it, but for the version, into so many. Values as above.
  static void write(const MapCore& map, std::span<const WriteIntent> writes,
                    std::span<std::byte> to) noexcept;
  /// Of a change of structure that writes nothing. Errors: likewise.
  [[nodiscard]] static Result<WriteRedo> of_structure(const MapCore& map) noexcept;

  /// Hands it over; does nothing the second time, and where there is none.
  /// Requires: the caller has taken the version, has published nothing under it, and holds the
  /// locks of all leaves that it writes to. At later moments it is called, too, for planted faults;
  /// it does nothing then.
  void hand_over(std::uint64_t version, RedoMoment moment = RedoMoment::locked) noexcept {
    if (room_ && is_handed_over_at(moment)) hand_over_now(version);
  }
  /// Of the record that must be durable before the version is released: its place in the sink's
  /// order; 0: none has to be, or it has none yet. For VersionClock::done().
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
