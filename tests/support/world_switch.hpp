// SPDX-License-Identifier: Apache-2.0
// The switch of one_sided_world.hpp, and its controller: READs with a key meet tables of the
// current tree, of an earlier one, of none, or wrong ones, and the tables may change between a READ
// and its duplicate. The controller follows the map's mapping feed, changes single entries, and
// reads the tree again if its shape has changed. Sometimes it pauses while many READs pass, or has
// lost its lease, and stale tables keep a void key; and it detects a host's crash only by chance.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/process_switch.hpp"
#include "index/index_follower.hpp"
#include "kinds/map/offload/index_host.hpp"
#include "kinds/map/remote/feed_cursor.hpp"
#include "tests/support/world_host.hpp"

namespace espalier::test {

class WorldSwitch {
 public:
  /// `hosts`: as of WorldClient. All must outlive it.
  WorldSwitch(fabric::sim::World& world, std::deque<std::unique_ptr<WorldHost>>& hosts,
              std::uint64_t seed, OneSidedCounts& counts);
  ~WorldSwitch();
  WorldSwitch(const WorldSwitch&) = delete;
  WorldSwitch& operator=(const WorldSwitch&) = delete;

 private:
  /// Changes the tables.
  void change();
  /// Starts to follow the present map, with a redirect key of its own.
  void begin();
  void lose_lease();
  /// The controller pauses while many READs pass. Its lease may be lost meanwhile.
  void pause();
  /// Sends the switch what has moved since, or all tables.
  void follow();
  void count_astray(const std::vector<dataplane::EntryChange>& changes);
  void read_feed();
  bool read_tree();
  /// Later tables write another key.
  void begin_generation();
  fabric::Registration offer_redirect();
  void install(const dataplane::IndexTables& tables);

  fabric::sim::World& world_;
  std::deque<std::unique_ptr<WorldHost>>& hosts_;
  Random random_;
  OneSidedCounts& counts_;
  dataplane::InstalledFunction function_;
  dataplane::ProcessSwitch through_{function_};
  WorldHost* host_ = nullptr;  // whose map it follows
  std::shared_ptr<offload::IndexedMap> map_;
  fabric::Registration redirect_;
  fabric::Registration before_;  // of the tables before
  std::optional<tree::MapView> view_;
  std::optional<place::FeedCursor> feed_;
  std::optional<place::IndexFollower> follower_;
  bool stale_ = true;     // the tree must be read again
  bool current_ = false;  // the switch has tables of the follower's shape, by its keys
  std::uint64_t reads_of_pause_ = 0;
};

}  // namespace espalier::test
