// SPDX-License-Identifier: Apache-2.0
#include "log/format.hpp"

#include <gtest/gtest.h>

#include <string>

#include "log/block_builder.hpp"
#include "log/block_reader.hpp"

namespace espalier::log {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    for (const int shift : {4, 0}) {
      text += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> shift & 0xF];
    }
  }
  return text;
}

SegmentHeader some_header() {
  SegmentHeader header{kSegmentMagic, kFormatVersion,        1 << 20, 0x1122, 0xA, 3,
                       100,           0x0123'4567'89AB'CDEF, 0,       0};
  header.crc = checksum_of(header);
  return header;
}

// The checksums were also computed by another program, bit by bit.
TEST(LogFormat, GoldenBytesOfAHeader) {
  const SegmentHeader header = some_header();
  EXPECT_EQ(hex(std::as_bytes(std::span(&header, 1))),
            "534553504c4f4700"
            "0100000000001000"
            "2211000000000000"
            "0a00000000000000"
            "0300000000000000"
            "6400000000000000"
            "efcdab8967452301"
            "00000000415f9e07");
}

TEST(LogFormat, GoldenBytesOfABlock) {
  BlockBuilder builder(kUnitBytes, kUnitBytes);
  builder.begin(some_header(), 2 * kUnitBytes, 107, 105);
  const std::string_view first = "abc";
  const std::string_view second = "12345678";
  builder.add(std::as_bytes(std::span(first)));
  builder.add(std::as_bytes(std::span(second)));
  const auto block = builder.finish();
  ASSERT_EQ(block.size(), kUnitBytes);
  EXPECT_EQ(hex(block.first(104)),
            "a1ff4eac"
            "45424c4b"
            "00100000"
            "60000000"
            "0020000000000000"
            "6b00000000000000"
            "6900000000000000"
            "02000000efcdab89"
            "6b000000000000000300000000000000"
            "6162630000000000"
            "6c000000000000000800000000000000"
            "3132333435363738"
            "0000000000000000");
}

TEST(LogFormat, NamesOfSegments) {
  EXPECT_EQ(segment_name(0xA), "log-000000000000000a.seg");
  EXPECT_EQ(segment_name(~std::uint64_t{0}, kBeingMade), "log-ffffffffffffffff.new");
  EXPECT_EQ(segment_of("log-00000000000000ff.seg", kInUse), 255u);
  for (const char* other : {"log-00000000000000ff.new", "log-00000000000000fF.seg", "log-0ff.seg",
                            "lock", "", "log-000000000000000ff.seg", "xlog-00000000000000ff.seg"}) {
    EXPECT_FALSE(segment_of(other, kInUse)) << other;
  }
}

}  // namespace
}  // namespace espalier::log
