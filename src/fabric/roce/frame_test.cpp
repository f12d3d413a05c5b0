// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/frame.hpp"

#include <gtest/gtest.h>

#include <string>

#include "fabric/roce/testing/sample_packets.hpp"

namespace espalier::fabric::roce {
namespace {

using std::string_literals::operator""s;

std::string frame_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

FrameHeader plain(bool is_v6) {
  FrameHeader header;
  header.destination = {2, 0, 0, 0, 0, 1};
  header.source = {2, 0, 0, 0, 0, 2};
  header.flow = {IpAddress::v4(10, 0, 0, 1), IpAddress::v4(10, 0, 0, 2), 49152};
  if (is_v6) {
    header.flow.source = IpAddress::v6({0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
    header.flow.destination =
        IpAddress::v6({0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
  }
  return header;
}

TEST(RoceFrame, GoldenBytes) {
  const std::string ethernet = "\2\0\0\0\0\1\2\0\0\0\0\2"s;
  const std::string udp = "\xC0\0\x12\xB7\0\x18\0\0"s;
  std::byte bytes[kFrameHeaderBytesMax];
  const auto written = [&bytes](const FrameHeader& header) {
    const std::size_t count = write_frame_header(bytes, header, 16);
    EXPECT_EQ(count, frame_header_bytes(header));
    return frame_text(std::span(bytes).first(count));
  };
  FrameHeader v4 = plain(false);
  v4.ip_id = 0x1234;
  // The header checksum is worked out by hand: the words add up to 3EBCC less it.
  const std::string ip = "\x45\0\0\x2C\x12\x34\x40\0\x40\x11\x14\x8B\x0A\0\0\1\x0A\0\0\2"s;
  EXPECT_EQ(written(v4), ethernet + "\x08\0"s + ip + udp);
  v4.vlan = 0x6005;
  EXPECT_EQ(written(v4), ethernet + "\x81\0\x60\5\x08\0"s + ip + udp);
  FrameHeader v6 = plain(true);
  v6.traffic_class = 0xAB;
  v6.flow_label = 0xCDEF1;
  EXPECT_EQ(written(v6), ethernet + "\x86\xDD\x6A\xBC\xDE\xF1\0\x18\x11\x40"s +
                             "\x20\1\x0D\xB8\0\0\0\0\0\0\0\0\0\0\0\1"s +
                             "\x20\1\x0D\xB8\0\0\0\0\0\0\0\0\0\0\0\2"s + udp);
}

TEST(RoceFrame, WhatIsWrittenIsReadAndItsIcrcIsRight) {
  base::Random random(base::seed_from_environment(61));
  const auto opcodes = sample::all_opcodes();
  for (int round = 0; round < 2000; ++round) {
    const FrameHeader header = sample::frame_header(random, random.chance(0.5), random.chance(0.5));
    const Bytes ib = sample::packet(random, opcodes[random.below(opcodes.size())], 300);
    Bytes bytes = sample::frame(header, ib);
    if (random.chance(0.5)) set_udp_checksum(bytes);
    // Ethernet fills up short frames, with anything.
    if (random.chance(0.5)) bytes.resize(bytes.size() + random.below(20), std::byte{0xEE});
    const auto frame = parse_frame(bytes);
    ASSERT_TRUE(frame);
    EXPECT_EQ(static_cast<const FrameHeader&>(*frame), header);
    ASSERT_EQ(frame->ib.size(), ib.size());
    EXPECT_TRUE(Icrc(frame->flow).matches(frame->ib, frame->ip_id));
    EXPECT_EQ(frame_text(frame->ib.first(ib.size() - 4)),
              frame_text(std::span(ib).first(ib.size() - 4)));
  }
}

/// A frame with some bytes changed, and IPv4's checksum made right again.
std::optional<Frame> parse_changed(Bytes bytes, std::size_t at, std::uint8_t value, Bytes& kept) {
  bytes[at] = std::byte{value};
  if (bytes[12] == std::byte{8}) {
    bytes[24] = bytes[25] = std::byte{0};
    std::uint32_t sum = 0;
    for (std::size_t i = 14; i < 34; i += 2) sum += base::load_be<std::uint16_t>(bytes.data() + i);
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    base::store_be(bytes.data() + 24, static_cast<std::uint16_t>(~sum));
  }
  kept = std::move(bytes);
  return parse_frame(kept);
}

TEST(RoceFrame, RefusesWhatIsNotAsItShouldBeInIPv4) {
  base::Random random(base::seed_from_environment(62));
  const Bytes ib = sample::packet(random, PacketOpcode::write_only, 64);
  const Bytes good = sample::frame(plain(false), ib);
  Bytes kept;
  const auto refused = [&](std::size_t at, std::uint8_t value) {
    return !parse_changed(good, at, value, kept);
  };
  ASSERT_FALSE(refused(16, static_cast<std::uint8_t>(good[16])));
  EXPECT_TRUE(refused(12, 0x09)) << "no IP";
  EXPECT_TRUE(refused(14, 0x65)) << "version";
  EXPECT_TRUE(refused(14, 0x44)) << "a header too short";
  EXPECT_TRUE(refused(14, 0x46)) << "options";
  EXPECT_TRUE(refused(16, 0x7F)) << "longer than the frame";
  EXPECT_TRUE(refused(17, 19)) << "shorter than its header";
  EXPECT_TRUE(refused(17, static_cast<std::uint8_t>(good[17]) - 1)) << "not as UDP says";
  EXPECT_TRUE(refused(20, 0x60)) << "more fragments";
  EXPECT_TRUE(refused(20, 0xC0)) << "the reserved flag";
  EXPECT_TRUE(refused(21, 1)) << "a fragment's offset";
  EXPECT_TRUE(refused(23, 6)) << "TCP";
  EXPECT_TRUE(refused(39, static_cast<std::uint8_t>(good[39]) + 1)) << "UDP's length";
  EXPECT_TRUE(refused(41, 1)) << "UDP's checksum";
  EXPECT_FALSE(refused(37, 0)) << "another port";
  Bytes wrong = good;
  wrong[25] ^= std::byte{1};
  EXPECT_FALSE(parse_frame(wrong)) << "the header's checksum";
}

TEST(RoceFrame, RefusesWhatIsNotAsItShouldBeInIPv6) {
  base::Random random(base::seed_from_environment(63));
  const Bytes ib = sample::packet(random, PacketOpcode::write_only, 64);
  const Bytes good = sample::frame(plain(true), ib);
  Bytes kept;
  const auto refused = [&](std::size_t at, std::uint8_t value) {
    return !parse_changed(good, at, value, kept);
  };
  EXPECT_FALSE(refused(14, 0x6F));
  EXPECT_TRUE(refused(14, 0x4F)) << "version";
  EXPECT_TRUE(refused(18, 0x7F)) << "longer than the frame";
  EXPECT_TRUE(refused(19, 0)) << "another length than UDP's";
  EXPECT_TRUE(refused(20, 44)) << "a fragment header";
  EXPECT_TRUE(refused(20, 0)) << "options";
  EXPECT_TRUE(refused(57, 0xB8)) << "no checksum, at another port";
  EXPECT_TRUE(refused(61, 1)) << "UDP's checksum";
}

TEST(RoceFrame, UdpChecksumsCoverAddressesAndAllTheRest) {
  base::Random random(base::seed_from_environment(64));
  for (const bool is_v6 : {false, true}) {
    FrameHeader header = plain(is_v6);
    header.flow.destination_port = 4000;  // with a checksum, any will do
    Bytes bytes = sample::frame(header, sample::packet(random, PacketOpcode::write_only, 61));
    set_udp_checksum(bytes);
    ASSERT_TRUE(parse_frame(bytes));
    EXPECT_NE(parse_frame(bytes)->udp_checksum, 0);
    for (std::size_t at = is_v6 ? 22 : 34; at < bytes.size(); ++at) {
      bytes[at] ^= std::byte{0x10};
      EXPECT_FALSE(parse_frame(bytes)) << at;
      bytes[at] ^= std::byte{0x10};
    }
  }
}

TEST(RoceFrame, AChecksumOfZeroIsWrittenAsAllOnes) {
  // One word of the payload runs through all values, so that once the sum comes out as all ones.
  Bytes ib(20);
  ib[0] = std::byte{4};
  int ones = 0;
  for (unsigned value = 0; value <= 0xFFFF; ++value) {
    base::store_be(ib.data() + 12, static_cast<std::uint16_t>(value));
    Bytes bytes(frame_header_bytes(plain(false)) + ib.size());
    const std::size_t at = write_frame_header(bytes.data(), plain(false), ib.size());
    std::copy(ib.begin(), ib.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    set_udp_checksum(bytes);
    const auto frame = parse_frame(bytes);
    ASSERT_TRUE(frame);
    ASSERT_NE(frame->udp_checksum, 0);
    ones += frame->udp_checksum == 0xFFFF;
  }
  EXPECT_GE(ones, 1);
}

TEST(RoceFrame, EveryPrefixIsRefusedAndAnyChangeIsSafe) {
  base::Random random(base::seed_from_environment(65));
  for (int round = 0; round < 200; ++round) {
    const FrameHeader header = sample::frame_header(random, random.chance(0.5), random.chance(0.5));
    const Bytes good = sample::frame(header, sample::packet(random, PacketOpcode::write_only, 40));
    for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
      ASSERT_FALSE(parse_frame(Bytes(good.begin(), good.begin() + static_cast<long>(bytes))));
    }
    for (int change = 0; change < 100; ++change) {
      Bytes changed = good;
      changed[random.below(60)] = sample::draw<std::byte>(random);
      const auto frame = parse_frame(changed);
      if (!frame || frame->ib.empty()) continue;
      ASSERT_GE(frame->ib.data(), changed.data() + 42);
      ASSERT_LE(frame->ib.data() + frame->ib.size(), changed.data() + changed.size());
    }
  }
}

}  // namespace
}  // namespace espalier::fabric::roce
