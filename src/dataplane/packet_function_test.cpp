// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet_function.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "dataplane/compiler.hpp"
#include "dataplane/testing/random_tree.hpp"
#include "dataplane/testing/read_frame.hpp"
#include "fabric/roce/testing/sample_packets.hpp"

namespace espalier::dataplane {
namespace {

using Bytes = std::vector<std::byte>;
using fabric::roce::FrameHeader;
using fabric::roce::Headers;
using fabric::roce::Icrc;
using fabric::roce::IpAddress;
using fabric::roce::PacketOpcode;

constexpr MapKeys kKeys{0xABCD'0001, 0xABCD'0002};

// A switch in front of one map, whose tables are those of a random tree.
struct Switch {
  explicit Switch(base::Random& random)
      : tree(random_tree(random, {.levels = 3, .children_max = 12, .here = 0.05})),
        tables(compile(tree, {.ranges = 20, .sets = 2, .nodes_per_set = 20}).tables) {
    function.add(kKeys, tables);
  }
  TreeImage tree;
  IndexTables tables;
  PacketFunction function;
};

FrameHeader draw_header(base::Random& random) {
  FrameHeader header;
  if (random.chance(0.3)) header.vlan = static_cast<std::uint16_t>(random());
  std::array<std::uint8_t, 16> bytes{};
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  const bool v6 = random.chance(0.5);
  const auto address = [&] {
    ++bytes[0];
    return v6 ? IpAddress::v6(bytes) : IpAddress::v4(bytes[0], bytes[1], bytes[2], bytes[3]);
  };
  header.flow.source = address();
  header.flow.destination = address();
  header.flow.source_port = static_cast<std::uint16_t>(random());
  header.traffic_class = static_cast<std::uint8_t>(random());
  header.ip_id = v6 ? std::uint16_t{0} : static_cast<std::uint16_t>(random());
  return header;
}

Bytes read_frame(base::Random& random, const FrameHeader& header, std::uint64_t number,
                 std::uint32_t key, bool checksum) {
  Headers headers = fabric::roce::sample::headers(random, PacketOpcode::read_request, 0);
  headers.reth.address = number;
  headers.reth.key = key;
  return sealed_frame(header, headers, {}, checksum);
}

TEST(PacketFunction, AReadByAKeyedKeyIsRedirectedAndStaysWhole) {
  base::Random random(base::seed_from_environment(1));
  for (int round = 0; round < 20; ++round) {
    const Switch at(random);
    for (const std::uint64_t number : border_keys(at.tree, random, 40)) {
      const bool checksum = random.chance(0.5);
      const FrameHeader header = draw_header(random);
      Bytes frame = read_frame(random, header, number, kKeys.keyed, checksum);
      const auto before = *fabric::roce::parse(fabric::roce::parse_frame(frame)->ib);
      const Processed processed = at.function.process(frame);
      const Found found = find(at.tables, number);
      ASSERT_EQ(processed, (Processed{Outcome::redirected, found.sets}));
      const auto whole = fabric::roce::parse_frame(frame);
      ASSERT_TRUE(whole) << "a checksum is wrong";
      ASSERT_EQ(whole->udp_checksum != 0, checksum);
      ASSERT_TRUE(Icrc(header.flow).matches(whole->ib, header.ip_id));
      const auto packet = fabric::roce::parse(whole->ib);
      ASSERT_TRUE(packet);
      ASSERT_EQ(packet->reth.address, found.address);
      ASSERT_EQ(packet->reth.key, kKeys.redirect);
      ASSERT_EQ(packet->reth.length, before.reth.length);
      ASSERT_EQ(packet->bth, before.bth);
    }
  }
}

TEST(PacketFunction, AllElsePassesUntouched) {
  base::Random random(base::seed_from_environment(2));
  const Switch at(random);
  const auto passes = [&at](Bytes frame) {
    const Bytes before = frame;
    return at.function.process(frame).outcome != Outcome::redirected && frame == before;
  };
  for (int round = 0; round < 50; ++round) {
    const FrameHeader header = draw_header(random);
    for (const PacketOpcode opcode : fabric::roce::sample::all_opcodes()) {
      if (opcode == PacketOpcode::read_request) continue;
      const bool carries = fabric::roce::parts_of(opcode).has(fabric::roce::Parts::kPayload);
      const Bytes payload =
          fabric::roce::sample::draw_bytes(random, carries ? random.below(64) : 0);
      Headers headers = fabric::roce::sample::headers(random, opcode, payload.size());
      headers.reth.key = kKeys.keyed;
      ASSERT_TRUE(passes(sealed_frame(header, headers, payload, round % 2 == 0)));
    }
    ASSERT_TRUE(passes(read_frame(random, header, 5, kKeys.redirect, false)));
    ASSERT_TRUE(passes(read_frame(random, header, 5, kKeys.keyed + 2, true)));

    // Not whole, of another port, a fragment, with a length that is not its own.
    const Bytes good = read_frame(random, header, 5, kKeys.keyed, false);
    for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
      ASSERT_TRUE(passes(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes))));
    }
    const std::size_t udp = good.size() - 40;
    const std::size_t ip = header.vlan ? 18 : 14;
    const auto spoiled = [&](std::size_t offset, unsigned flip) {
      Bytes bad = good;
      bad[offset] ^= static_cast<std::byte>(flip);
      return passes(bad);
    };
    ASSERT_TRUE(spoiled(udp + 3, 1));                                  // the port
    ASSERT_TRUE(spoiled(udp + 5, 4));                                  // UDP's length
    ASSERT_TRUE(spoiled(udp + 9, 1));                                  // a pad
    ASSERT_TRUE(spoiled(udp + 9, 4));                                  // the transport's version
    ASSERT_TRUE(spoiled(ip, 0x80));                                    // IP's version
    ASSERT_TRUE(spoiled(ip - 1, 1));                                   // the type
    ASSERT_TRUE(spoiled(ip + (header.flow.source.is_v6 ? 6 : 9), 1));  // the protocol
    if (!header.flow.source.is_v6) {
      ASSERT_TRUE(spoiled(ip + 6, 0x20));  // more fragments follow
      ASSERT_TRUE(spoiled(ip + 7, 1));     // not the first one
      ASSERT_TRUE(spoiled(ip, 7));         // no room for so short a header
    }
  }
}

TEST(PacketFunction, WhatIsBehindTheFrameAndBeforeItCounts) {
  base::Random random(base::seed_from_environment(3));
  const Switch at(random);
  const FrameHeader header = plain_frame_header();
  const Bytes good = read_frame(random, header, 7, kKeys.keyed, true);
  // Ethernet fills short frames up.
  Bytes longer = good;
  longer.resize(good.size() + 30, std::byte{0x77});
  EXPECT_EQ(at.function.process(longer).outcome, Outcome::redirected);
  EXPECT_EQ(longer.back(), std::byte{0x77});
  // Two tags, and options of IPv4.
  Bytes tagged = good;
  const std::array tags{std::byte{0x88}, std::byte{0xA8}, std::byte{0}, std::byte{5},
                        std::byte{0x81}, std::byte{0},    std::byte{0}, std::byte{6}};
  tagged.insert(tagged.begin() + 12, tags.begin(), tags.end());
  EXPECT_EQ(at.function.process(tagged).outcome, Outcome::redirected);
  Bytes options = good;
  options.insert(options.begin() + 34, 8, std::byte{1});
  options[14] = std::byte{0x47};
  options[17] = static_cast<std::byte>(std::to_integer<unsigned>(options[17]) + 8);
  EXPECT_EQ(at.function.process(options).outcome, Outcome::redirected);
}

// What was damaged before stays damaged.
TEST(PacketFunction, AWrongIcrcIsNotMadeRight) {
  base::Random random(base::seed_from_environment(4));
  const Switch at(random);
  for (int round = 0; round < 200; ++round) {
    const FrameHeader header = draw_header(random);
    Bytes frame = read_frame(random, header, random(), kKeys.keyed, false);
    const std::size_t ib = frame.size() - 32;
    // In the packet sequence number, the length, or the ICRC: not where it decides what is done.
    const std::size_t bytes[] = {9, 10, 11, 24, 27, 28, 31};
    frame[ib + bytes[random.below(7)]] ^= static_cast<std::byte>(1u << random.below(8));
    ASSERT_EQ(at.function.process(frame).outcome, Outcome::redirected);
    ASSERT_FALSE(Icrc(header.flow).matches(std::span(frame).subspan(ib), header.ip_id));
  }
}

TEST(PacketFunction, ReadsThatPassAreToldFromAllElse) {
  base::Random random(base::seed_from_environment(6));
  const Switch at(random);
  Bytes read = read_frame(random, draw_header(random), 5, kKeys.redirect, true);
  EXPECT_EQ(at.function.process(read), (Processed{Outcome::read_passed, 0}));
  Headers headers = fabric::roce::sample::headers(random, PacketOpcode::fetch_add, 0);
  Bytes other = sealed_frame(draw_header(random), headers);
  EXPECT_EQ(at.function.process(other), Processed{});
  EXPECT_EQ(PacketFunction().process(read).outcome, Outcome::read_passed);
}

// What transports do that have no packets.
TEST(PacketFunction, AReadWithoutAPacketGoesTheSameWay) {
  base::Random random(base::seed_from_environment(7));
  const Switch at(random);
  for (const std::uint64_t number : border_keys(at.tree, random, 40)) {
    std::uint32_t key = kKeys.keyed;
    std::uint64_t address = number;
    std::optional<Shim> none;
    const Found found = find(at.tables, number);
    ASSERT_EQ(at.function.redirect(key, address, none),
              (Processed{Outcome::redirected, found.sets}));
    ASSERT_EQ(key, kKeys.redirect);
    ASSERT_EQ(address, found.address);
    ASSERT_EQ(at.function.redirect(key, address, none).outcome, Outcome::read_passed);
    ASSERT_EQ(address, found.address);
  }
}

TEST(PacketFunction, EachMapHasTablesOfItsOwn) {
  base::Random random(base::seed_from_environment(5));
  PacketFunction function;
  for (std::uint32_t map = 0; map < 3; ++map) {
    TreeImage tree;
    tree.set_root(tree.add_leaf(0x1000 + map, 1));
    function.add({100 + map, 200 + map}, compile(tree, {}).tables);
  }
  const FrameHeader header = draw_header(random);
  for (std::uint32_t map = 0; map < 3; ++map) {
    Bytes frame = read_frame(random, header, 5, 100 + map, false);
    ASSERT_EQ(function.process(frame).outcome, Outcome::redirected);
    const auto packet = fabric::roce::parse(fabric::roce::parse_frame(frame)->ib);
    EXPECT_EQ(packet->reth.address, 0x1000 + map);
    EXPECT_EQ(packet->reth.key, 200 + map);
  }
}

}  // namespace
}  // namespace espalier::dataplane
