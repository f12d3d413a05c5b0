// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/icrc.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/crc32.hpp"
#include "fabric/roce/testing/sample_packets.hpp"

namespace espalier::fabric::roce {
namespace {

/// The ICRC as the specification words it, from the bytes of an IP packet: mask a copy, and take
/// the checksum bit by bit.
std::uint32_t by_definition(std::span<const std::byte> ip) {
  Bytes masked(8, std::byte{0xFF});
  masked.insert(masked.end(), ip.begin(), ip.end() - 4);
  const bool is_v6 = (ip[0] >> 4) == std::byte{6};
  const std::size_t udp = 8 + (is_v6 ? 40 : 20);
  const auto mask = [&masked](std::size_t at) { masked[at] = std::byte{0xFF}; };
  if (is_v6) {
    masked[8] |= std::byte{0x0F};  // traffic class
    for (const std::size_t at : {9, 10, 11}) mask(at);
    mask(8 + 7);
  } else {
    mask(8 + 1);
    mask(8 + 8);
    mask(8 + 10);
    mask(8 + 11);
  }
  mask(udp + 6);
  mask(udp + 7);
  mask(udp + 8 + 4);
  std::uint32_t state = 0xFFFFFFFF;
  for (const std::byte byte : masked) {
    state ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~state;
}

/// The packet in a frame, by its number of bytes before the ICRC's end.
std::uint32_t stored(std::span<const std::byte> frame) {
  return base::load_le<std::uint32_t>(frame.data() + frame.size() - 4);
}

TEST(RoceIcrc, GoldenBytes) {
  // What scapy.contrib.roce makes of the same packet.
  IpFlow flow{IpAddress::v4(10, 0, 0, 1), IpAddress::v4(10, 0, 0, 2), 49152};
  Headers headers;
  headers.bth = {.opcode = PacketOpcode::read_request,
                 .ask_acknowledge = true,
                 .destination = 0x123456,
                 .psn = 0xABCDEF};
  headers.reth = {0x0102030405060708, 0x11223344, 64};
  Bytes ib = sample::packet(headers, {});
  Icrc(flow).seal(ib, 0x1234);
  EXPECT_EQ(stored(ib), 0xB6F92057u);
  EXPECT_TRUE(Icrc(flow).matches(ib, 0x1234));
}

TEST(RoceIcrc, EqualsItsDefinitionForAllKindsOfPackets) {
  base::Random random(base::seed_from_environment(51));
  for (int round = 0; round < 30; ++round) {
    for (const PacketOpcode opcode : sample::all_opcodes()) {
      for (const bool is_v6 : {false, true}) {
        const FrameHeader header = sample::frame_header(random, is_v6, false);
        const Bytes frame = sample::frame(header, sample::packet(random, opcode, 4096));
        ASSERT_EQ(stored(frame), by_definition(std::span(frame).subspan(14)))
            << static_cast<int>(opcode) << " " << is_v6;
      }
    }
  }
}

TEST(RoceIcrc, WhatRoutersChangeIsNotCovered) {
  base::Random random(base::seed_from_environment(52));
  for (const bool is_v6 : {false, true}) {
    FrameHeader header = sample::frame_header(random, is_v6, false);
    Bytes ib = sample::packet(random, PacketOpcode::write_only, 100);
    const std::uint32_t before = stored(sample::frame(header, ib));
    header.hop_limit ^= 1;
    header.traffic_class ^= 3;
    header.flow_label ^= is_v6 ? 1 : 0;
    header.vlan = 7;
    ib[4] ^= std::byte{0xFF};
    EXPECT_EQ(stored(sample::frame(header, ib)), before);
  }
}

TEST(RoceIcrc, EveryBitThatIsCoveredIsSeen) {
  base::Random random(base::seed_from_environment(53));
  const IpFlow flow = sample::flow(random, false);
  Bytes ib = sample::packet(random, PacketOpcode::send_only, 50);
  const Icrc icrc(flow);
  icrc.seal(ib, 77);
  ASSERT_TRUE(icrc.matches(ib, 77));
  for (std::size_t bit = 0; bit < ib.size() * 8; ++bit) {
    ib[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_EQ(icrc.matches(ib, 77), bit / 8 == 4) << bit;
    ib[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_FALSE(icrc.matches(ib, 78));
  EXPECT_FALSE(Icrc(flow.reversed()).matches(ib, 77));
  IpFlow fragile = flow;
  fragile.dont_fragment = !flow.dont_fragment;
  EXPECT_FALSE(Icrc(fragile).matches(ib, 77));
}

TEST(RoceIcrc, BytesThatAreNoPacketDoNotMatch) {
  const Icrc icrc(IpFlow{});
  for (std::size_t bytes = 0; bytes < 40; ++bytes) EXPECT_FALSE(icrc.matches(Bytes(bytes)));
  EXPECT_FALSE(icrc.matches(Bytes(kIbBytesMax + 1)));
  EXPECT_FALSE(icrc.matches(Bytes(kIbBytesMax)));
  Bytes longest(kIbBytesMax);
  for (const bool is_v6 : {false, true}) {
    FrameHeader header;
    header.flow.source.is_v6 = header.flow.destination.is_v6 = is_v6;
    const Bytes frame = sample::frame(header, longest);
    EXPECT_EQ(stored(frame), by_definition(std::span(frame).subspan(14)));
  }
}

TEST(RoceIcrc, PiecesMakeTheWhole) {
  base::Random random(base::seed_from_environment(54));
  for (int round = 0; round < 200; ++round) {
    const Icrc icrc(sample::flow(random, random.chance(0.5)));
    const Bytes ib = sample::packet(random, PacketOpcode::read_response_only, 2000);
    const std::span whole = std::span(ib).first(ib.size() - 4);
    const std::size_t first = random.between(12, std::min<std::size_t>(whole.size(), 40));
    const std::uint32_t state = icrc.begin(ib.size(), whole.first(first));
    EXPECT_EQ(base::crc32_end(base::crc32_extend(state, whole.subspan(first))), icrc.of(ib));
  }
}

TEST(RoceIcrc, ARedirectedReadIsAsIfMadeSo) {
  base::Random random(base::seed_from_environment(55));
  for (int round = 0; round < 1000; ++round) {
    const Icrc icrc(sample::flow(random, random.chance(0.5)));
    const auto id = sample::draw<std::uint16_t>(random);
    Headers headers = sample::headers(random, PacketOpcode::read_request, 0);
    Bytes ib = sample::packet(headers, {});
    icrc.seal(ib, id);
    const bool damaged = random.chance(0.2);
    if (damaged) ib[9 + random.below(19)] ^= std::byte{4};
    headers.reth.address = random();
    headers.reth.key = sample::draw<std::uint32_t>(random);
    redirect_read(ib, headers.reth.address, headers.reth.key);
    ASSERT_EQ(icrc.matches(ib, id), !damaged);
    if (damaged) continue;
    Bytes expected = sample::packet(headers, {});
    icrc.seal(expected, id);
    ASSERT_EQ(ib, expected);
  }
  EXPECT_EQ(icrc_change(0, 0), 0u);
}

}  // namespace
}  // namespace espalier::fabric::roce
