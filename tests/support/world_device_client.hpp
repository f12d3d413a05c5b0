// SPDX-License-Identifier: Apache-2.0
// A client of a device of one_sided_world.hpp: reads the present map through it, and gives up a
// device that does not answer for long.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tests/support/world_device.hpp"

namespace espalier::test {

class WorldDeviceClient {
 public:
  /// `hosts`: as of WorldClient. All must outlive this.
  WorldDeviceClient(fabric::sim::World& world, std::deque<std::unique_ptr<WorldHost>>& hosts,
                    WorldDevice& device, std::uint32_t number, std::uint64_t seed,
                    const OneSidedOptions& options, Clock& clock, MapRecords& records,
                    OneSidedCounts& counts);

  void turn();
  /// Whether all its requests are answered or given up, and none will follow.
  [[nodiscard]] bool done() const { return left_ == 0 && pending_.empty(); }
  /// What is wrong so far; takes what was recorded.
  [[nodiscard]] std::string wrong();

 private:
  struct Pending {
    Request request;
    Handler* handler = nullptr;
    std::uint64_t asked_ns = 0;
  };

  void open_map();
  void ask();
  void take(const rings::Response& response);
  void give_up();
  WalkRecorder& recorder();

  fabric::sim::World& world_;
  std::deque<std::unique_ptr<WorldHost>>& hosts_;
  WorldDevice& device_;
  const std::uint32_t number_;
  Random random_;
  const OneSidedOptions options_;
  Clock& clock_;
  MapRecords& records_;
  OneSidedCounts& counts_;
  const std::size_t place_;  // at the device
  std::uint64_t left_;
  std::uint64_t engine_ = 0;  // of the device, that the map is of
  std::optional<WorldHost::Opening> opening_;
  bool map_gone_ = false;
  std::map<std::uint32_t, Pending> pending_;  // by tag
  std::uint32_t next_tag_ = 1;
  std::map<std::size_t, std::unique_ptr<WalkRecorder>> recorders_;  // by map
};

}  // namespace espalier::test
