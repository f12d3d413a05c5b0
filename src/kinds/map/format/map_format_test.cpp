// SPDX-License-Identifier: Apache-2.0
// Golden bytes of maps (wire/format_test.cpp).
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/bytes.hpp"
#include "kinds/map/format/map_header.hpp"
#include "kinds/map/format/node.hpp"

namespace espalier::wire {
namespace {

using std::string_literals::operator""s;

using base::bytes_of;

NodeHeader counting_header() {
  // Every byte of the header says where it lies, as far as its field allows.
  NodeHeader header{};
  unsigned char bytes[sizeof header];
  for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<unsigned char>(i);
  std::memcpy(&header, bytes, sizeof header);
  return header;
}

TEST(Format, NodeHeaderFieldsOfTheFirstLine) {
  const NodeHeader header = counting_header();
  EXPECT_EQ(header.map_id, 0x03020100u);
  EXPECT_EQ(header.generation, 0x07060504u);
  EXPECT_EQ(header.created, 0x0F0E0D0C0B0A0908u);
  EXPECT_EQ(header.superseded, 0x1716151413121110u);
  EXPECT_EQ(header.low_key_prefix, 0x1F1E1D1C1B1A1918u);
  EXPECT_EQ(header.high_key_prefix, 0x2726252423222120u);
  EXPECT_EQ(header.key_prefix_base, 0x2F2E2D2C2B2A2928u);
  EXPECT_EQ(header.lock, 0x3736353433323130u);
  EXPECT_EQ(static_cast<unsigned>(header.kind), 0x38u);
  EXPECT_EQ(header.level, 0x39u);
  EXPECT_EQ(header.key_prefix_shift, 0x3Au);
  EXPECT_EQ(header.chunks, 0x3Bu);
  EXPECT_EQ(header.prefix_bytes, 0x3D3Cu);
  EXPECT_EQ(header.sorted_end, 0x3F3Eu);
}

TEST(Format, NodeHeaderFieldsOfTheSecondLine) {
  const NodeHeader header = counting_header();
  EXPECT_EQ(header.old_ref, 0x4746454443424140u);
  EXPECT_EQ(header.old2_ref, 0x4F4E4D4C4B4A4948u);
  EXPECT_EQ(header.successor_ref, 0x5756555453525150u);
  EXPECT_EQ(header.lid, 0x5B5A5958u);
  EXPECT_EQ(header.left, 0x5F5E5D5Cu);
  EXPECT_EQ(header.right, 0x63626160u);
  EXPECT_EQ(header.low_bytes, 0x6564u);
  EXPECT_EQ(header.high_bytes, 0x6766u);
  EXPECT_EQ(header.fence_begin, 0x6968u);
  EXPECT_EQ(header.items, 0x6B6Au);
  EXPECT_EQ(header.log_begin, 0x6D6Cu);
  EXPECT_EQ(header.log_end, 0x6F6Eu);
  EXPECT_EQ(header.old2_low_key_prefix, 0x7776757473727170u);
  EXPECT_EQ(header.self_ref, 0x7F7E7D7C7B7A7978u);
}

TEST(Format, NodeKinds) {
  EXPECT_EQ(static_cast<int>(NodeKind::invalid), 0);
  EXPECT_EQ(static_cast<int>(NodeKind::leaf), 1);
  EXPECT_EQ(static_cast<int>(NodeKind::interior), 2);
}

TEST(Format, LockWord) {
  const LockWord free = LockWord{}.next(3, 0x12);
  EXPECT_EQ(bytes_of(free), "\2\0\0\0\3\x12\0\0"s);
  EXPECT_FALSE(free.locked());
  EXPECT_EQ(free.entries(), 3u);
  EXPECT_EQ(free.units(), 0x12u);
  EXPECT_EQ(free.sequence(), 2u);
  const LockWord held = free.with_lock();
  EXPECT_TRUE(held.locked());
  EXPECT_EQ(bytes_of(held), "\3\0\0\0\3\x12\0\0"s);
  EXPECT_FALSE(held.next(3, 0x12).locked());
  EXPECT_EQ(held.next(3, 0x12).sequence(), 4u);
}

TEST(Format, FencesShare) {
  const FencesShare share = FencesShare::of(0x0102);
  EXPECT_EQ(bytes_of(share), "\0\0\0\0\0\0\2\1"s);
  EXPECT_EQ(share.bytes(), 0x0102u);
  EXPECT_FALSE(LockWord{share.bits}.locked());
  EXPECT_EQ(LockWord{share.bits}.entries(), 0u);
}

TEST(Format, TheSequenceOfALockWrapsInItsOwnBits) {
  const LockWord last{0x0000'1203'FFFF'FFFF};
  EXPECT_EQ(last.next(4, 0x13).bits, 0x0000'1304'0000'0000u);
}

TEST(Format, LogEntry) {
  const LogEntry entry{0x0102030405060708,          0,      0x0C,
                       kLogErase | kLogSameKeyNext, 0x0102, kOutOfLine};
  EXPECT_EQ(bytes_of(entry), "\x08\x07\x06\x05\x04\x03\x02\x01\0\0\x0C\x05\x02\x01\xFF\x7F"s);
  EXPECT_EQ(kLogErase, 1);
  EXPECT_EQ(kLogShadowsSorted, 2);
  EXPECT_EQ(kLogSameKeyNext, 4);
  EXPECT_EQ(kLogUnitBytes, 8u);
}

TEST(Format, Values) {
  EXPECT_EQ(bytes_of(ValueRef{0x0102030405060708, 16}),
            "\x08\x07\x06\x05\x04\x03\x02\x01\x10\0\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes_of(ValueHeader{1, 2, 3, 4, 5}),
            "\1\0\0\0\2\0\0\0\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0"s);
}

TEST(Format, ChildGroup) {
  ChildGroup group{};
  group.key_prefixes[1] = 0x01020304;
  group.children[0] = 0x05060708;
  const std::string bytes(bytes_of(group));
  EXPECT_EQ(bytes.substr(4, 4), "\4\3\2\1");
  EXPECT_EQ(bytes.substr(64, 4), "\x08\x07\x06\x05");
}

TEST(Format, MapHeader) {
  MapHeader header{};
  header.map_id = 0x01;
  header.generation = 0x02;
  header.superseded = kLive;
  header.magic = kMapMagic;
  header.format = kMapFormat;
  header.node_bytes = 8192;
  header.log_bytes = 512;
  header.versions = 1;
  header.directory_offset = 0x200000;
  header.root = 12291;
  header.read_version = 5;
  header.write_version = 6;
  header.clock_offset = 0x010203040506;
  const std::string bytes(bytes_of(header));
  EXPECT_EQ(bytes.substr(0, 24),
            "\1\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s);
  EXPECT_EQ(bytes.substr(24, 8), "ELIR MAP");
  EXPECT_EQ(bytes.substr(32, 16), "\3\0\0\0\0\x20\0\0\0\2\0\0\1\0\0\0"s);
  EXPECT_EQ(bytes.substr(48, 16), "\0\0\x20\0\0\0\0\0\3\x30\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes.substr(64, 16), "\5\0\0\0\0\0\0\0\6\5\4\3\2\1\0\0"s);
  EXPECT_EQ(bytes.substr(128, 8), "\6\0\0\0\0\0\0\0"s);
}

TEST(Format, PageTable) {
  EXPECT_EQ(kTablePageBytes, 32768u);
  EXPECT_EQ(kDirectoryBytes, 65536u);
  EXPECT_EQ(kHeaderWords, 3u);
}

}  // namespace
}  // namespace espalier::wire
