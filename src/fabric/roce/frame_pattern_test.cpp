// SPDX-License-Identifier: Apache-2.0
// A pattern reads and writes what the long way does, and nothing else.
#include "fabric/roce/frame_pattern.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/testing/port_traffic.hpp"

namespace espalier::fabric::roce {
namespace {

FrameHeader any_header(base::Random& random) {
  FrameHeader header;
  for (auto& byte : header.destination) byte = static_cast<std::uint8_t>(random());
  for (auto& byte : header.source) byte = static_cast<std::uint8_t>(random());
  const auto byte = [&] { return static_cast<std::uint8_t>(random()); };
  header.flow = {IpAddress::v4(byte(), byte(), byte(), byte()),
                 IpAddress::v4(byte(), byte(), byte(), byte()),
                 static_cast<std::uint16_t>(random()), static_cast<std::uint16_t>(random()),
                 random.chance(0.5)};
  header.traffic_class = byte();
  header.hop_limit = byte();
  header.ip_id = static_cast<std::uint16_t>(random());
  return header;
}

Bytes frame_of(const FrameHeader& header, std::size_t ib_bytes, base::Random& random) {
  Bytes frame(frame_header_bytes(header) + ib_bytes);
  random.fill(frame);
  write_frame_header(frame.data(), header, ib_bytes);
  return frame;
}

class RoceFramePattern : public ::testing::Test {
 protected:
  base::Random random{base::seed_from_environment(64)};
};

TEST_F(RoceFramePattern, WritesAsTheLongWayDoes) {
  for (int round = 0; round < 3000; ++round) {
    FrameHeader header = any_header(random);
    const FramePattern pattern(frame_of(header, random.below(4200), random));
    ASSERT_TRUE(pattern.known());
    header.ip_id = static_cast<std::uint16_t>(random());
    const std::size_t ib_bytes = random.below(4200);
    const Bytes expected = frame_of(header, ib_bytes, random);
    Bytes written = expected;
    std::fill_n(written.begin(), FramePattern::kHeaderBytes, std::byte{0x55});
    pattern.write(written.data(), header.ip_id, ib_bytes);
    ASSERT_EQ(written, expected);
  }
}

TEST_F(RoceFramePattern, ReadsAsTheLongWayDoes) {
  for (int round = 0; round < 3000; ++round) {
    FrameHeader header = any_header(random);
    const FramePattern pattern(frame_of(header, random.below(4200), random));
    header.ip_id = static_cast<std::uint16_t>(random());
    Bytes frame = frame_of(header, random.below(4200), random);
    frame.resize(frame.size() + (random.chance(0.5) ? random.below(20) : 0));  // Ethernet fills up
    const auto read = pattern.read(frame);
    const auto parsed = parse_frame(frame);
    ASSERT_TRUE(read && parsed);
    ASSERT_EQ(read->ip_id, parsed->ip_id);
    ASSERT_EQ(read->ib.data(), parsed->ib.data());
    ASSERT_EQ(read->ib.size(), parsed->ib.size());
  }
}

// What it takes, the long way takes with the same result; so no change of bytes gets in by it.
TEST_F(RoceFramePattern, TakesNothingThatTheLongWayRefuses) {
  std::size_t taken = 0;
  std::size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const FrameHeader header = any_header(random);
    Bytes frame = frame_of(header, random.below(64), random);
    const FramePattern pattern(frame);
    for (std::uint64_t i = random.between(1, 2); i != 0; --i) {
      const std::size_t at = random.below(std::min<std::size_t>(frame.size(), 44));
      frame[at] ^= static_cast<std::byte>(1u << random.below(8));
    }
    if (random.chance(0.3)) frame.resize(random.below(frame.size() + 1));
    const auto read = pattern.read(frame);
    const auto parsed = parse_frame(frame);
    if (!read) {
      ++refused;
      continue;
    }
    ++taken;
    ASSERT_TRUE(parsed);
    ASSERT_EQ(parsed->flow, header.flow);
    ASSERT_EQ(parsed->destination, header.destination);
    ASSERT_EQ(parsed->source, header.source);
    ASSERT_EQ(read->ip_id, parsed->ip_id);
    ASSERT_EQ(read->ib.data(), parsed->ib.data());
    ASSERT_EQ(read->ib.size(), parsed->ib.size());
  }
  EXPECT_GT(taken, 100u);
  EXPECT_GT(refused, 10'000u);
}

TEST_F(RoceFramePattern, EachPlaceOfTheHeadersCounts) {
  const FrameHeader header = any_header(random);
  const Bytes frame = frame_of(header, 16, random);
  const FramePattern pattern(frame);
  ASSERT_TRUE(pattern.read(frame));
  for (std::size_t bit = 0; bit < 8 * FramePattern::kHeaderBytes; ++bit) {
    Bytes changed = frame;
    changed[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    ASSERT_FALSE(pattern.read(changed)) << "bit " << bit;
  }
}

TEST_F(RoceFramePattern, KnowsNothingOfOtherFrames) {
  FrameHeader tagged = any_header(random);
  tagged.vlan = 5;
  EXPECT_FALSE(FramePattern(frame_of(tagged, 32, random)).known());
  FrameHeader six = any_header(random);
  six.flow.source = six.flow.destination = IpAddress::v6({1});
  EXPECT_FALSE(FramePattern(frame_of(six, 32, random)).known());
  Bytes summed = frame_of(any_header(random), 32, random);
  set_udp_checksum(summed);
  EXPECT_FALSE(FramePattern(summed).known());
  const Bytes plain = frame_of(any_header(random), 0, random);
  EXPECT_FALSE(FramePattern(std::span(plain).first(plain.size() - 1)).known());
  EXPECT_FALSE(FramePattern().known());
  EXPECT_FALSE(FramePattern().read(plain));
}

}  // namespace
}  // namespace espalier::fabric::roce
