// SPDX-License-Identifier: Apache-2.0
// The maps that one scheduler works on, by id: looked up in the catalogue on first use, and
// released once dropped and unused.
//
// Thread: that of the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "kinds/map/offload/served_map.hpp"

namespace espalier::offload {

class MapsElsewhere;
struct Services;

class MapTable {
 public:
  /// `shard`: of counters. The maps are those of the services' own store or, if the node has
  /// NodeMapsElsewhere, those of this scheduler there.
  MapTable(Services& services, std::uint32_t shard);

  /// The map of this id; null: it does not exist, or was dropped. Errors: std::bad_alloc.
  [[nodiscard]] ServedMap* find(std::uint32_t number) {
    if (number == last_number_ && last_ != nullptr && !last_->dropped()) [[likely]]
      return last_;
    return look_up(number);
  }
  /// Has the map's walks stepped until none is in flight. Returns whether none was before.
  bool begin_walks(ServedMap& map) {
    if (map.walking) return false;
    map.walking = true;
    walking_.push_back(&map);
    return true;
  }
  /// Whether walks of any map are in flight.
  [[nodiscard]] bool walking() const { return !walking_.empty(); }
  /// Advances all walks by one turn. Returns whether there were any.
  bool step();
  /// Releases dropped maps that are unused. Cost: a check of each map.
  void let_go_of_dropped();

 private:
  [[nodiscard]] ServedMap* look_up(std::uint32_t number);
  [[nodiscard]] std::unique_ptr<ServedMap> serve(std::uint32_t number);

  Services& services_;
  const std::uint32_t shard_;
  MapsElsewhere* const elsewhere_;  // null: the maps are in the store
  std::unordered_map<std::uint32_t, std::unique_ptr<ServedMap>> maps_;
  std::uint32_t last_number_ = 0;  // the last argument of find(), whose result follows
  ServedMap* last_ = nullptr;
  std::vector<ServedMap*> walking_;  // maps with walks in flight
};

}  // namespace espalier::offload
