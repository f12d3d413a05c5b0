// SPDX-License-Identifier: Apache-2.0
#include "dataplane/fat_tree.hpp"

#include <gtest/gtest.h>

#include "dataplane/testing/even_tree.hpp"
#include "dataplane/testing/read_frame.hpp"

namespace espalier::dataplane {
namespace {

using fabric::roce::PortAddress;
using Host = FatTree::Host;
using Packet = std::vector<std::byte>;

constexpr std::uint32_t kTreeKey = 0xABCD'0041;
constexpr Host kTreeNodes[] = {{0, 0, 0}, {0, 1, 1}, {2, 0, 0}};
constexpr Host kNear{0, 0, 1};  // below the edge switch of the first node
constexpr Host kFar{3, 1, 0};

PortAddress at(const fabric::roce::IpAddress& ip) { return {ip, wire::roce::kUdpPort}; }

/// Three nodes, each with a tree of 512 leaves: the fat root knows one level, the switches below it
/// one each.
struct ThreeNodes {
  ThreeNodes() {
    for (const Host& each : kTreeNodes) tree.add_node(each);
    topology = tree.budget(24, {1, 200}, {1, 1000});
    const std::vector<TreeImage> images(3, image);
    for (Compiled& each : compile(images, *limits_of(topology))) {
      tables.push_back(std::move(each.tables));
    }
    fill();
  }
  void fill() {
    programs = cut_program(keys, tables, topology, ++generation);
    for (std::size_t i = 0; i < programs.size(); ++i) {
      tree.function(i).install(programs[i].function());
    }
  }
  /// What comes out of a READ by the keyed key, from its BTH on.
  Packet read(const Host& from, const fabric::roce::IpAddress& to, std::uint64_t number) {
    fabric::roce::Headers headers;
    headers.bth.opcode = fabric::roce::PacketOpcode::read_request;
    headers.reth = {number, kTreeKey, 1024};
    Packet ib(fabric::roce::packet_bytes(headers.bth.opcode, 0));
    fabric::roce::write_packet(ib.data(), headers, {});
    fabric::roce::Icrc(flow(from, to)).seal(ib, 0);
    tree.through.process(at(from.address()), at(to), ib);
    return ib;
  }
  static fabric::roce::IpFlow flow(const Host& from, const fabric::roce::IpAddress& to) {
    return {from.address(), to, wire::roce::kUdpPort, wire::roce::kUdpPort, true};
  }
  /// Key and address of what arrived whole; nothing: it did not.
  struct Read {
    std::uint32_t key = 0;
    std::uint64_t address = 0;
    friend bool operator==(const Read&, const Read&) = default;
  };
  std::optional<Read> arrives(const Host& from, const fabric::roce::IpAddress& to,
                              std::uint64_t number) {
    const Packet ib = read(from, to, number);
    if (!fabric::roce::Icrc(flow(from, to)).matches(ib, 0)) return std::nullopt;
    const std::byte* const reth = ib.data() + sizeof(wire::roce::BthBytes);
    return Read{base::load_be<std::uint32_t>(reth + offsetof(wire::roce::RethBytes, key)),
                base::load_be<std::uint64_t>(reth)};
  }
  [[nodiscard]] Read redirected(std::uint16_t node, std::uint64_t number) const {
    return {keys[node].redirect, find(tables[node], number).address};
  }

  FatTree tree;
  const TreeImage image = even_tree(3, 8, 1000, std::vector<std::uint64_t>(512, 1));
  const std::vector<MapKeys> keys = {{kTreeKey, 11, 0}, {kTreeKey, 12, 1}, {kTreeKey, 13, 2}};
  TopologyBudget topology;
  std::vector<IndexTables> tables;
  std::vector<SwitchProgram> programs;
  std::uint32_t generation = 0;
};

TEST(FatTree, AReadGoesToTheLeafOfItsNodeAlongTheSwitchesOfItsWay) {
  ThreeNodes world;
  for (std::uint64_t number = 0; number < 512'000; number += 7777) {
    for (const Host& from : {kNear, kFar}) {
      for (std::uint16_t node = 0; node < 3; ++node) {
        EXPECT_EQ(world.arrives(from, kTreeNodes[node].service(), number),
                  world.redirected(node, number));
      }
    }
  }
  EXPECT_EQ(find(world.tables[0], 7777).address, (7 + 1) * 64u) << "a leaf";
  const auto& counters = world.tree.through.counters();
  EXPECT_EQ(counters.redirected, 66u * 6);
  EXPECT_EQ(counters.carried, 66u * 6 * 2) << "by the core and one aggregation switch";
}

// The shortest way, which the core does not see.
TEST(FatTree, OnlyTheAddressOfAServiceIsPinnedThroughTheCore) {
  ThreeNodes world;
  const auto seen = [&](const fabric::roce::IpAddress& to) {
    std::vector<ProcessSwitch::Stop> way;
    EXPECT_TRUE(world.tree.through.route(at(kNear.address()), at(to), way));
    std::vector<std::size_t> numbers;
    for (const auto& stop : way) numbers.push_back(stop.number);
    EXPECT_TRUE(way.front().hop.first && way.back().hop.last);
    return numbers;
  };
  EXPECT_EQ(seen(kTreeNodes[0].address()), (std::vector<std::size_t>{5}));
  EXPECT_EQ(seen(kTreeNodes[1].address()), (std::vector<std::size_t>{5, 1, 6}));
  EXPECT_EQ(seen(kTreeNodes[0].service()), (std::vector<std::size_t>{5, 1, 0, 1, 5}));
  EXPECT_EQ(seen(kTreeNodes[2].address()), (std::vector<std::size_t>{5, 1, 0, 3, 9}));
  EXPECT_EQ(world.arrives(kFar, kTreeNodes[0].address(), 5), (ThreeNodes::Read{kTreeKey, 5}))
      << "no tables are for it";
  std::vector<ProcessSwitch::Stop> way;
  for (const auto& nobody :
       {fabric::roce::IpAddress::v4(10, 4, 0, 2), fabric::roce::IpAddress::v4(10, 0, 0, 4),
        fabric::roce::IpAddress::v4(10, 0, 2, 2), fabric::roce::IpAddress::v4(10, 0, 0, 1),
        fabric::roce::IpAddress::v4(11, 0, 0, 2), fabric::roce::IpAddress::v4(10, 0, 0, 132)}) {
    EXPECT_FALSE(world.tree.through.route(at(kNear.address()), at(nobody), way));
  }
}

TEST(FatTree, WhatPassesALinkOrASwitchThatIsDownIsLost) {
  ThreeNodes world;
  const auto to = kTreeNodes[0].service();
  const auto is_lost = [&] { return !world.arrives(kFar, to, 5).has_value(); };
  const auto other_is_not = [&] {
    return world.arrives(kFar, kTreeNodes[2].service(), 5) == world.redirected(2, 5);
  };
  for (const std::size_t number : {FatTree::aggregation(0), FatTree::edge(0, 0)}) {
    world.tree.set_uplink(number, false);
    EXPECT_TRUE(is_lost() && other_is_not());
    world.tree.set_uplink(number, true);
    EXPECT_EQ(world.arrives(kFar, to, 5), world.redirected(0, 5));
    world.tree.set_switch(number, false);
    EXPECT_TRUE(is_lost() && other_is_not());
    world.tree.set_switch(number, true);
    // It has no tables now, so the READ is the node's own, or goes as far as others know.
    EXPECT_EQ(world.arrives(kFar, to, 5), (ThreeNodes::Read{kTreeKey, 5}));
    world.fill();
  }
  world.tree.set_host_link(kTreeNodes[0], false);
  EXPECT_TRUE(is_lost() && other_is_not());
  world.tree.set_host_link(kTreeNodes[0], true);
  world.tree.set_switch(FatTree::kCore, false);
  EXPECT_TRUE(is_lost());
  EXPECT_TRUE(world.arrives(kNear, kTreeNodes[0].address(), 5)) << "the core is not on its way";
}

// Any host may forge one: it comes no further than its own edge switch.
TEST(FatTree, EdgePortsDropShimsFromHosts) {
  ThreeNodes world;
  for (const auto& to : {kTreeNodes[0].service(), kTreeNodes[0].address()}) {
    std::vector<ProcessSwitch::Stop> way;
    ASSERT_TRUE(world.tree.through.route(at(kNear.address()), at(to), way));
    Packet frame = keyed_frame(5, kTreeKey);
    frame.resize(frame.size() + kShimBytes);
    add_shim(std::span(frame).first(frame.size() - kShimBytes), find_datagram(frame),
             {world.generation, 0, 0, 2});
    EXPECT_EQ(world.programs[way.front().number].function().process(frame, way.front().hop).outcome,
              Outcome::shim_dropped);
    EXPECT_EQ(PacketFunction().process(frame, way.front().hop).outcome, Outcome::shim_dropped);
  }
}

}  // namespace
}  // namespace espalier::dataplane
