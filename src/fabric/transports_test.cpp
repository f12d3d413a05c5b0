// SPDX-License-Identifier: Apache-2.0
// The transports that the conformance tests run over.
#include <list>

#include "fabric/fabric_fixture.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/packet_network.hpp"

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

FabricTransport simulated_roce(std::string name, const roce::NetworkFaults& faults,
                               std::uint32_t effort = 1) {
  return {
      std::move(name),
      [faults](std::uint64_t seed) { return std::make_unique<SimulatedRoceLink>(seed, faults); },
      effort};
}

}  // namespace

std::vector<FabricTransport> fabric_transports() {
  return {
      simulated_roce("roce", {}),
      simulated_roce("roce_reordering", {.delay_min_ns = 1000, .delay_max_ns = 5000}),
      simulated_roce("roce_losing",
                     {.loss = 0.05,
                      .duplicate = 0.02,
                      .damage = 0.01,
                      .delay_min_ns = 1000,
                      .delay_max_ns = 3000},
                     2),
  };
}

}  // namespace espalier::fabric
