// SPDX-License-Identifier: Apache-2.0
// A device of one_sided_world.hpp: the scheduler and the offloads of a device, whose walks read the
// host's memory through the simulated fabric (world_device_link.hpp). Its clients send requests by
// rings, and messages are delayed.
//
// By the seed its turns are delayed, between any two of its READs; they take long, at any read of
// its clock; it is stopped for longer than its leases last, alone or with all of its machine; or it
// crashes. Each answer of its own walks is checked against the guarantee of world_client.hpp.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device_offloads.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "tests/support/world_device_link.hpp"

namespace espalier::test {

class WorldDevice {
 public:
  /// `hosts`: as of WorldClient. `others`: runs everything else for a moment. All must outlive
  /// this.
  WorldDevice(fabric::sim::World& world, std::deque<std::unique_ptr<WorldHost>>& hosts,
              std::uint32_t number, std::uint64_t seed, const OneSidedOptions& options,
              OneSidedCounts& counts, std::function<void()> others);
  ~WorldDevice();
  WorldDevice(const WorldDevice&) = delete;
  WorldDevice& operator=(const WorldDevice&) = delete;

  /// One turn of its worker, if it is due. Not reentrant.
  void turn();
  /// Stops it: it gets no turns until then.
  void stop();
  /// Crashes it; sometimes its machine, too.
  void die();
  [[nodiscard]] bool dead() const { return dead_; }

  // --- for its clients ---------------------------------------------------------------------------
  /// What a client gets; nothing comes for requests of an engine that is no more.
  using OnResponse = std::function<void(const rings::Response& response)>;
  /// Connects a client. Returns its number.
  std::size_t add_client(OnResponse on_response);
  /// Sends a request of this client, which has a tag of its own.
  void send(std::size_t client, std::uint64_t engine, const std::string& message);
  /// The number of its present engine. Maps that an earlier engine knew are not those of this one.
  [[nodiscard]] std::uint64_t engine() const { return engines_; }
  /// The host whose maps it serves.
  [[nodiscard]] WorldHost& host() { return link_->host(); }

  /// What is wrong so far. Ends it.
  [[nodiscard]] std::string wrong();

 private:
  struct Client {
    OnResponse on_response;
    offload::SchedulerFixture::Client* at = nullptr;  // the engine
    std::map<std::uint32_t, std::uint32_t> maps;      // that requests in flight ask, by tag
  };

  void begin();
  void end();
  [[nodiscard]] std::uint64_t clock();
  void collect();
  void check(const Client& client, const rings::Response& response);
  void look_at_the_dead();
  [[nodiscard]] std::uint64_t way_ns();

  fabric::sim::World& world_;
  std::deque<std::unique_ptr<WorldHost>>& hosts_;
  const std::string node_;
  Random random_;
  const OneSidedOptions options_;
  OneSidedCounts& counts_;
  const std::function<void()> others_;
  const device::DeviceOffloads offloads_{"host"};
  std::unique_ptr<WorldDeviceLink> link_;
  std::unique_ptr<offload::SchedulerFixture> scheduler_;  // null: it has ended
  std::uint64_t engines_ = 0;
  std::deque<Client> clients_;
  std::uint64_t next_turn_ns_ = 0;
  std::uint64_t stopped_until_ns_ = 0;
  bool dead_ = false;
  bool busy_ = false;
  std::string wrong_;
};

}  // namespace espalier::test
