// SPDX-License-Identifier: Apache-2.0
// For tests: a machine of a simulated world on which a hostile peer lives.
//
// Thread: one at a time.
#pragma once

#include <string>
#include <utility>

#include "channel/rings/tests/testing/hostile_peer.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::client {

inline HostileMachine simulated_machine(fabric::sim::World& world, const std::string& name,
                                        std::string target) {
  return {.start =
              [&world, name, is_new = true]() mutable {
                return std::exchange(is_new, false) ? world.add_node(name) : world.restart(name);
              },
          .crash = [&world, name] { world.crash(name); },
          .target = std::move(target)};
}

}  // namespace espalier::client
