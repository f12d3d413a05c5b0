// SPDX-License-Identifier: Apache-2.0
// The transports that the conformance tests run over.
#include <list>

#include "base/temporary_folder.hpp"
#include "fabric/fabric_fixture.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/exchange.hpp"
#include "fabric/roce/packet_network.hpp"
#include "fabric/roce/udp_port.hpp"
#include "fabric/shm/endpoint.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::fabric {
namespace {

/// Memory of this process, or shared with others.
class LinkMemory {
 public:
  OfferedMemory take(std::uint64_t bytes) {
    memories_.push_back(*memory::SharedMemory::create("fabric-test", bytes));
    const memory::SharedMemory& memory = memories_.back();
    return {memory.at(0), bytes, memory.descriptor(), 0};
  }

 private:
  std::list<memory::SharedMemory> memories_;
};

/// Two nodes of a simulated world.
class SimLink final : public FabricLink {
 public:
  SimLink(std::uint64_t seed, const sim::Faults& faults)
      : world_(seed, faults), near_(world_.add_node("near")), far_(world_.add_node("far")) {
    EXPECT_TRUE(far_->listen("far"));
  }
  Endpoint& near() override { return *near_; }
  Endpoint& far() override { return *far_; }
  std::string address() override { return "far"; }
  std::string nobody() override { return "nobody"; }
  void turn() override {
    near_->progress();
    far_->progress();
    world_.run_for(1000);
  }
  OfferedMemory memory(std::uint64_t bytes) override { return memory_.take(bytes); }

 private:
  sim::World world_;
  LinkMemory memory_;
  std::unique_ptr<Endpoint> near_;
  std::unique_ptr<Endpoint> far_;
};

FabricTransport simulated(std::string name, const sim::Faults& faults, std::uint32_t effort = 1) {
  return {std::move(name),
          [faults](std::uint64_t seed) { return std::make_unique<SimLink>(seed, faults); }, effort};
}

/// Two endpoints that map each other's memory.
class ShmLink final : public FabricLink {
 public:
  explicit ShmLink(std::uint64_t seed)
      : near_(*shm::open(*RegionTable::create(seed))),
        far_(*shm::open(*RegionTable::create(seed + 1))) {
    EXPECT_TRUE(far_->listen(address()));
  }
  Endpoint& near() override { return *near_; }
  Endpoint& far() override { return *far_; }
  std::string address() override { return (folder_ / "far").string(); }
  std::string nobody() override { return (folder_ / "nobody").string(); }
  void turn() override {
    near_->progress();
    far_->progress();
  }
  OfferedMemory memory(std::uint64_t bytes) override { return memory_.take(bytes); }

 private:
  base::TemporaryFolder folder_;
  LinkMemory memory_;
  std::unique_ptr<Endpoint> near_;
  std::unique_ptr<Endpoint> far_;
};

/// `roce` over a network that keeps its own time.
class SimulatedRoceLink final : public FabricLink {
 public:
  SimulatedRoceLink(std::uint64_t seed, const roce::NetworkFaults& faults)
      : network_(seed),
        near_(network_.open({roce::IpAddress::v4(10, 0, 0, 1), 4791}), *RegionTable::create(seed),
              seed + 1),
        far_(network_.open({roce::IpAddress::v4(10, 0, 0, 2), 4791}),
             *RegionTable::create(seed + 2), seed + 3) {
    network_.faults = faults;
    EXPECT_TRUE(far_.listen("7"));
  }
  Endpoint& near() override { return near_; }
  Endpoint& far() override { return far_; }
  std::string address() override { return "10.0.0.2/7"; }
  std::string nobody() override { return "10.0.0.3/7"; }
  void turn() override {
    near_.progress();
    far_.progress();
    network_.advance(10'000);
  }
  OfferedMemory memory(std::uint64_t bytes) override { return memory_.take(bytes); }

 private:
  roce::PacketNetwork network_;
  LinkMemory memory_;
  roce::RoceEndpoint near_;
  roce::RoceEndpoint far_;
};

/// `roce` over UDP sockets of this machine's loopback interface.
class UdpRoceLink final : public FabricLink {
 public:
  UdpRoceLink(std::uint64_t seed, const roce::UdpPortOptions& options)
      : near_(*roce::UdpPort::open(options), *RegionTable::create(seed), seed + 1),
        far_(*roce::UdpPort::open(options), *RegionTable::create(seed + 2), seed + 3) {
    EXPECT_TRUE(far_.listen("7"));
  }
  Endpoint& near() override { return near_; }
  Endpoint& far() override { return far_; }
  std::string address() override { return to_text(far_.port().address()) + "/7"; }
  std::string nobody() override { return to_text(far_.port().address()) + "/8"; }
  void turn() override {
    near_.progress();
    far_.progress();
  }
  OfferedMemory memory(std::uint64_t bytes) override { return memory_.take(bytes); }

 private:
  LinkMemory memory_;
  roce::RoceEndpoint near_;
  roce::RoceEndpoint far_;
};

/// `roce` through memory, with no kernel between.
class ExchangeRoceLink final : public FabricLink {
 public:
  explicit ExchangeRoceLink(std::uint64_t seed)
      : near_(*exchange_.open({roce::IpAddress::v4(10, 0, 0, 1), 4791}), *RegionTable::create(seed),
              seed + 1),
        far_(*exchange_.open({roce::IpAddress::v4(10, 0, 0, 2), 4791}),
             *RegionTable::create(seed + 2), seed + 3) {
    EXPECT_TRUE(far_.listen("7"));
  }
  Endpoint& near() override { return near_; }
  Endpoint& far() override { return far_; }
  std::string address() override { return "10.0.0.2/7"; }
  std::string nobody() override { return "10.0.0.3/7"; }
  void turn() override {
    near_.progress();
    far_.progress();
  }
  OfferedMemory memory(std::uint64_t bytes) override { return memory_.take(bytes); }

 private:
  roce::PortExchange exchange_;
  LinkMemory memory_;
  roce::RoceEndpoint near_;
  roce::RoceEndpoint far_;
};

FabricTransport udp_roce(std::string name, const roce::UdpPortOptions& options) {
  return {std::move(name),
          [options](std::uint64_t seed) { return std::make_unique<UdpRoceLink>(seed, options); }};
}

FabricTransport simulated_roce(std::string name, const roce::NetworkFaults& faults,
                               std::uint32_t effort = 1) {
  return {
      std::move(name),
      [faults](std::uint64_t seed) { return std::make_unique<SimulatedRoceLink>(seed, faults); },
      effort};
}

}  // namespace

std::vector<FabricTransport> fabric_transports() {
  const auto loopback = roce::IpAddress::v4(127, 0, 0, 1);
  const auto loopback_six = roce::IpAddress::v6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  roce::NetworkFaults reordering;
  reordering.delay_max_ns = 5000;
  roce::NetworkFaults losing;
  losing.loss = 0.05;
  losing.duplicate = 0.02;
  losing.damage = 0.01;
  losing.delay_max_ns = 3000;
  return {
      simulated("sim", {}),
      simulated("sim_harsh", sim::Faults::harsh(), 4),
      {"shm", [](std::uint64_t seed) { return std::make_unique<ShmLink>(seed); }},
      simulated_roce("roce", {}),
      simulated_roce("roce_reordering", reordering),
      simulated_roce("roce_losing", losing, 2),
      {"roce_memory", [](std::uint64_t seed) { return std::make_unique<ExchangeRoceLink>(seed); }},
      udp_roce("roce_udp", {{loopback, 0}}),
      udp_roce("roce_udp_ipv6", {{loopback_six, 0}}),
      udp_roce("roce_udp_plain", {{loopback, 0}, false}),
  };
}

}  // namespace espalier::fabric
