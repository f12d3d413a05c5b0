// SPDX-License-Identifier: Apache-2.0
#include "dataplane/shim.hpp"

#include <gtest/gtest.h>

#include <array>

#include "base/random.hpp"
#include "dataplane/testing/frame_corpus.hpp"
#include "dataplane/testing/read_frame.hpp"
#include "dataplane/testing/row_checks.hpp"
#include "fabric/roce/testing/sample_packets.hpp"

namespace espalier::dataplane {
namespace {

using ShimmedFrame = std::vector<std::byte>;

constexpr Shim kSample{0x1122'3344, 0x0000'0E0F, 0, 2};

ShimmedFrame sample_read(base::Random& random, bool v6, bool checksum) {
  const auto header = fabric::roce::sample::frame_header(random, v6, random.chance(0.5));
  const auto headers =
      fabric::roce::sample::headers(random, fabric::roce::PacketOpcode::read_request, 0);
  return sealed_frame(header, headers, {}, checksum);
}

ShimmedFrame with_shim(ShimmedFrame frame, const Shim& shim) {
  const std::size_t bytes = frame.size();
  frame.resize(bytes + kShimBytes);
  const auto whole = std::span(frame).first(bytes);
  add_shim(whole, find_datagram(whole), shim);
  return frame;
}

TEST(Shim, HasTheseBytes) {
  std::array<std::byte, kShimBytes> bytes{};
  write_shim(bytes.data(), kSample);
  constexpr std::array<unsigned, kShimBytes> kGolden{0x11, 0x02, 0x00, 0x00, 0x11, 0x22,
                                                     0x33, 0x44, 0x00, 0x00, 0x0E, 0x0F,
                                                     0x12, 0xB7, 0x89, 0xD1};
  for (std::size_t i = 0; i < kShimBytes; ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), kGolden[i]) << i;
  }
  EXPECT_EQ(read_shim(bytes.data(), ShimKind::read), kSample);
}

TEST(Shim, OneThatWasDamagedIsNone) {
  std::array<std::byte, kShimBytes> bytes{};
  write_shim(bytes.data(), kSample);
  for (std::size_t bit = 0; bit < 8 * kShimBytes; ++bit) {
    auto bad = bytes;
    bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_EQ(read_shim(bad.data(), ShimKind::read), std::nullopt) << bit;
  }
}

// Whole, but to another port, of a later version, or of another kind.
TEST(Shim, OneOfAnotherFormatIsNone) {
  std::array<std::byte, kShimBytes> good{};
  write_shim(good.data(), kSample);
  const auto changed = [&good](std::size_t place, std::uint16_t by) {
    auto bytes = good;
    for (const auto& [at, change] : {std::pair{place, by}, {offsetof(ShimBytes, checksum), by}}) {
      const auto word = base::load_be<std::uint16_t>(bytes.data() + at);
      const bool is_sum = at == offsetof(ShimBytes, checksum);
      base::store_be(bytes.data() + at,
                     static_cast<std::uint16_t>(is_sum ? word - change : word + change));
    }
    return read_shim(bytes.data(), ShimKind::read);
  };
  EXPECT_NE(changed(offsetof(ShimBytes, generation), 1), std::nullopt) << "the sum is right so";
  EXPECT_EQ(changed(offsetof(ShimBytes, port), 1), std::nullopt);
  EXPECT_EQ(changed(offsetof(ShimBytes, version_kind), 0x1000), std::nullopt);
  EXPECT_EQ(changed(offsetof(ShimBytes, version_kind), 0x0100), std::nullopt);
}

TEST(Shim, GoesInAndOutOfAFrame) {
  base::Random random(base::seed_from_environment(1));
  for (int round = 0; round < 400; ++round) {
    const bool checksum = round % 2 == 0;
    ShimmedFrame sent = sample_read(random, round % 4 < 2, checksum);
    if (random.chance(0.2)) sent.resize(sent.size() + random.below(30), std::byte{0x77});
    const Shim shim{static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random()),
                    static_cast<std::uint16_t>(random()), static_cast<std::uint8_t>(random())};
    ShimmedFrame frame = with_shim(sent, shim);
    ASSERT_EQ(frame.size(), sent.size() + kShimBytes);
    ASSERT_TRUE(is_whole(frame)) << "a length or a checksum is wrong";
    const auto parsed = fabric::roce::parse_frame(frame, fabric::roce::UdpChecksum::any);
    EXPECT_EQ(parsed->flow.destination_port, kShimPort);
    EXPECT_EQ(parsed->udp_checksum != 0, checksum);
    EXPECT_EQ(parsed->udp_checksum, fabric::roce::parse_frame(sent)->udp_checksum)
        << "it holds for both";
    const Datagram datagram = find_datagram(frame);
    EXPECT_TRUE(is_for_switch(datagram));
    EXPECT_EQ(find_shim(datagram), shim);
    remove_shim(frame, datagram);
    frame.resize(sent.size());
    ASSERT_EQ(frame, sent);
  }
}

// Options of IPv4, and a checksum of IP that was wrong before: it stays wrong.
TEST(Shim, WhatItDoesNotKnowOfAFrameStays) {
  base::Random random(base::seed_from_environment(2));
  ShimmedFrame sent = sealed_frame(plain_frame_header(), [] {
    fabric::roce::Headers headers;
    headers.bth.opcode = fabric::roce::PacketOpcode::read_request;
    return headers;
  }());
  sent.insert(sent.begin() + 34, 8, std::byte{1});
  sent[14] = std::byte{0x47};
  sent[17] = static_cast<std::byte>(std::to_integer<unsigned>(sent[17]) + 8);
  seal_by_definition(sent, true);
  ShimmedFrame frame = with_shim(sent, kSample);
  remove_shim(frame, find_datagram(frame));
  frame.resize(sent.size());
  EXPECT_EQ(frame, sent);
  for (int round = 0; round < 100; ++round) {
    ShimmedFrame damaged = sent;
    damaged[24 + random.below(2)] ^= static_cast<std::byte>(1u << random.below(8));
    frame = with_shim(damaged, kSample);
    EXPECT_FALSE(fabric::roce::parse_frame(frame));
    remove_shim(frame, find_datagram(frame));
    frame.resize(damaged.size());
    EXPECT_EQ(frame, damaged);
  }
}

TEST(Shim, LengthsThatDisagreeAndWhatIsNoReadAreNone) {
  base::Random random(base::seed_from_environment(3));
  for (const bool v6 : {false, true}) {
    const ShimmedFrame good = with_shim(sample_read(random, v6, false), kSample);
    const std::size_t udp = udp_offset(good);
    ShimmedFrame whole = good;
    ASSERT_TRUE(find_shim(find_datagram(whole)));
    const auto is_none = [&](std::size_t place, unsigned flip) {
      ShimmedFrame bad = good;
      bad[place] ^= static_cast<std::byte>(flip);
      const Datagram datagram = find_datagram(bad);
      return datagram.udp == nullptr || !find_shim(datagram);
    };
    EXPECT_TRUE(is_none(udp + 3, 1));                         // the port
    EXPECT_TRUE(is_none(udp + 5, 4));                         // UDP's length
    EXPECT_TRUE(is_none(ip_offset(good) + (v6 ? 5 : 3), 4));  // IP's
    EXPECT_TRUE(is_none(udp + 8 + kShimBytes, 1));            // the opcode
    for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
      ShimmedFrame cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes));
      const Datagram datagram = find_datagram(cut);
      EXPECT_TRUE(datagram.udp == nullptr || !find_shim(datagram)) << bytes;
    }
  }
}

}  // namespace
}  // namespace espalier::dataplane
