// SPDX-License-Identifier: Apache-2.0
// The switch of one_sided_world.hpp, and its controller: READs that carry a key meet tables that
// are of the tree as it is, of the tree as it was, of none, or that lie; between a READ and its
// duplicate they become others. Now and then the controller has lost its lease, and old tables go
// on naming a key that is void; and it never hears of a host's death but by chance.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "dataplane/process_switch.hpp"
#include "offload/index_host.hpp"
#include "tests/support/world_host.hpp"

namespace espalier::test {

class WorldSwitch {
 public:
  /// `hosts`: as of WorldClient. All outlive it.
  WorldSwitch(fabric::sim::World& world, std::deque<std::unique_ptr<WorldHost>>& hosts,
              std::uint64_t seed, OneSidedCounts& counts);
  ~WorldSwitch();
  WorldSwitch(const WorldSwitch&) = delete;
  WorldSwitch& operator=(const WorldSwitch&) = delete;

 private:
  /// Tables become others.
  void change();
  /// Takes up the map that there is, by a redirect key of its own.
  void begin();
  void lose_lease();
  void compile();
  /// Tables that are made from now on write another key.
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
  fabric::Registration before_;    // of the tables before
  dataplane::IndexTables tables_;  // compiled last
};

}  // namespace espalier::test
