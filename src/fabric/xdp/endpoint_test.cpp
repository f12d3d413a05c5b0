// SPDX-License-Identifier: Apache-2.0
// All verbs between endpoints on a cable, of which one or both have a port of AF_XDP; and that they
// are opened by their addresses.
#include <gtest/gtest.h>

#include <utility>

#include "fabric/address.hpp"
#include "fabric/roce/testing/port_link.hpp"
#include "fabric/testing/meeting.hpp"
#include "fabric/testing/mixed_traffic.hpp"
#include "fabric/xdp/testing/xdp_fixture.hpp"

namespace espalier::fabric::xdp {
namespace {

enum class Kind : std::uint8_t { udp, native, generic };

class XdpEndpointsSlow : public XdpTest {
 protected:
  std::unique_ptr<roce::PacketPort> open_kind(int side, Kind kind, bool is_v6) {
    if (kind == Kind::udp) return open_udp(side, is_v6);
    return open(side, is_v6, kind == Kind::native);
  }
  std::unique_ptr<roce::PortLink> link(Kind near, Kind far, bool is_v6, std::uint64_t seed) {
    return std::make_unique<roce::PortLink>(open_kind(0, near, is_v6), open_kind(1, far, is_v6),
                                            seed);
  }
};

TEST_F(XdpEndpointsSlow, AllVerbs) {
  for (const auto& [near, far] :
       {std::pair(Kind::native, Kind::native), std::pair(Kind::generic, Kind::native),
        std::pair(Kind::native, Kind::udp), std::pair(Kind::udp, Kind::native)}) {
    for (const bool is_v6 : {false, true}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(near) << " to " << static_cast<int>(far)
                                      << (is_v6 ? " by IPv6" : " by IPv4"));
      roce::PortLink* made = nullptr;
      FabricScene scene({"xdp",
                         [&](std::uint64_t seed) {
                           auto cable = link(near, far, is_v6, seed);
                           made = cable.get();
                           return cable;
                         }},
                        base::seed_from_environment(95));
      MixedTraffic(scene).run(150);
      EXPECT_EQ(made->near().counters().malformed + made->far().counters().malformed, 0u);
      EXPECT_GT(made->near().counters().packets, 1000u);
    }
  }
}

TEST_F(XdpEndpointsSlow, PacketsAreNoLongerThanFit) {
  FabricScene scene(
      {"xdp", [&](std::uint64_t seed) { return link(Kind::native, Kind::native, false, seed); }},
      1);
  QueuePairOptions large;
  large.mtu_bytes = 4096;
  const ConnectedPair pair = scene.connect(large);
  std::vector<std::byte> back(100'000);
  scene.random.fill(scene.far_bytes());
  const auto& remote = scene.region.remote();
  EXPECT_EQ(scene.run(*pair.near, WorkRequest::read(1, back, remote.key, remote.at(0))).status,
            Status::success);
  EXPECT_TRUE(std::equal(back.begin(), back.end(), scene.far_bytes().begin()));
}

TEST_F(XdpEndpointsSlow, WhoWantsLongerPacketsIsRefused) {
  const auto cable = link(Kind::udp, Kind::native, false, 1);
  CompletionQueue queue(cable->near(), 16);
  QueuePairOptions large;
  large.sends = &queue;
  large.send_depth = large.receive_depth = 4;
  large.mtu_bytes = 4096;
  const auto pair = *cable->near().connect(cable->address(), large, {});
  while (pair->state() == QueuePair::State::connecting) cable->turn();
  EXPECT_EQ(pair->state(), QueuePair::State::error);
  EXPECT_EQ(pair->ended_by(), Status::remote_operation);
  EXPECT_FALSE(cable->far().next_request());
}

TEST_F(XdpEndpointsSlow, AddressesOpenThem) {
  for (const std::string host : {"10.77.0.", "fd77::"}) {
    auto listening = network->at(1, [&] {
      return open_for_listening(*parse("roce+xdp://veth1/" + host + "2/7"), *RegionTable::create());
    });
    ASSERT_TRUE(listening) << message(listening.error());
    const auto second = network->at(
        1, [&] { return open_for_listening(listening->address, *RegionTable::create()); });
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::already_exists);
    for (const std::string scheme : {"roce+xdp://veth0/", "roce://"}) {
      auto connecting = network->at(0, [&] {
        return open_for_connecting(*parse(scheme + host + "2/7"), *RegionTable::create());
      });
      ASSERT_TRUE(connecting) << message(connecting.error());
      EXPECT_EQ(connecting->mtu_bytes, 1024u);
      expect_to_meet(*listening, *connecting);
    }
  }
}

}  // namespace
}  // namespace espalier::fabric::xdp
