// SPDX-License-Identifier: Apache-2.0
// Golden bytes of the fabric's shared-memory transport. A test that fails here says that the format
// changed, and then its version must.
#include "wire/fabric_shm.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.hpp"

namespace espalier::wire {
namespace {

using base::bytes_of;
using std::string_literals::operator""s;

TEST(FabricShmFormat, Packets) {
  EXPECT_EQ(bytes_of(FabricNote{4, 0x01020304}), "\4\0\0\0\4\3\2\1"s);
  EXPECT_EQ(bytes_of(FabricAnswer{4, 1, 2, 3, 4, 5, 6}),
            "\4\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0"s);
  EXPECT_EQ(static_cast<std::uint32_t>(FabricPacket::void_answer), 6u);
  FabricHello hello{};
  hello.packet = static_cast<std::uint32_t>(FabricPacket::hello);
  hello.format = kFabricFormat;
  hello.magic = kFabricMagic;
  hello.data_bytes = 2;
  EXPECT_EQ(bytes_of(hello).substr(0, 20), "\1\0\0\0\1\0\0\0ESPBFSHM\2\0\0\0"s);
}

TEST(FabricShmFormat, PieceHead) {
  EXPECT_EQ(bytes_of(FabricPieceHead{1, 2, 3, {}, 4, 5, 6, 7}),
            "\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6\0\0\0\7\0\0\0\0\0\0\0"s);
}

TEST(FabricShmFormat, LinesOfPieces) {
  EXPECT_EQ(fabric_slots(0), 1u);
  EXPECT_EQ(fabric_slots(32), 1u);
  EXPECT_EQ(fabric_slots(33), 2u);
  EXPECT_EQ(fabric_slots(fabric_piece_bytes_max(64)), 16u);
  EXPECT_EQ(fabric_sequence(0), 1u);
  EXPECT_EQ(fabric_sequence(0x80000000), 1u);
  EXPECT_EQ(fabric_ring(1, 64), 8192u);
  EXPECT_EQ(fabric_channel_bytes(64), 12288u);
  EXPECT_TRUE(fabric_slots_valid(64));
  EXPECT_FALSE(fabric_slots_valid(63));
  EXPECT_FALSE(fabric_slots_valid(96));
  EXPECT_FALSE(fabric_slots_valid(1u << 17));
}

}  // namespace
}  // namespace espalier::wire
