// SPDX-License-Identifier: Apache-2.0
// Golden bytes: what other programs, machines and switches read. A test that fails here says that
// the format changed, and then its version must.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/bytes.hpp"
#include "wire/fabric_greeting.hpp"
#include "wire/handshake.hpp"
#include "wire/message.hpp"
#include "wire/node_numbers.hpp"
#include "wire/ref.hpp"
#include "wire/ring.hpp"

namespace espalier::wire {
namespace {

using std::string_literals::operator""s;

using base::bytes_of;

TEST(Format, Ref) {
  const Ref ref = Ref::make(0x1234'5678'9A00, 0xBCDEF01);
  EXPECT_EQ(bytes_of(ref), "\x4D\x3C\x2B\x1A\x19\xF0\xDE\xBC"s);
  EXPECT_EQ(ref.offset(), 0x1234'5678'9A00u);
  EXPECT_EQ(ref.generation(), 0xBCDEF01u);
  EXPECT_FALSE(Ref{});
  EXPECT_TRUE(Ref::make(0, 1));
}

TEST(Format, RefsCarryTheLowBitsOfTheGenerationAndBlocksOf512) {
  EXPECT_EQ(Ref::make(512, 0xF000'0001).generation(), 1u);
  EXPECT_EQ(Ref::make(1023, 1).offset(), 512u);
  const std::uint64_t highest = kBlockMask * kBlockBytes;
  EXPECT_EQ(Ref::make(highest, kGenerationMask).offset(), highest);
  EXPECT_EQ(Ref::make(highest, kGenerationMask).bits, ~std::uint64_t{0});
}

TEST(Format, BufferHeader) {
  const BufferHeader header{1, 2, 3, kLive};
  EXPECT_EQ(bytes_of(header), "\1\0\0\0\2\0\0\0\3\0\0\0\0\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s);
}

TEST(RingFormat, LinesOfMessages) {
  EXPECT_EQ(slots_of(32), 1u);
  EXPECT_EQ(slots_of(63), 1u);
  EXPECT_EQ(slots_of(64), 1u);
  EXPECT_EQ(slots_of(65), 2u);
  EXPECT_EQ(slots_of(124), 2u);
  EXPECT_EQ(slots_of(125), 3u);
  EXPECT_EQ(slots_of(184), 3u);
  EXPECT_EQ(slots_of(kMessageBytesMax), 559'241u);
  // The first line holds 64 bytes of a message, its own word counted, and each other 60 more.
  for (std::uint32_t bytes = 65; bytes < 10'000; ++bytes) {
    const std::uint32_t lines = slots_of(bytes);
    ASSERT_GE(64 + (lines - 1) * kRingSlotPayload, bytes);
    ASSERT_LT(64 + (lines - 2) * kRingSlotPayload, bytes);
  }
}

TEST(RingFormat, SequenceWords) {
  EXPECT_EQ(sequence_of(0), 1u);
  EXPECT_EQ(sequence_of(0xFFFF'FFFE), 0xFFFF'FFFFu);
  EXPECT_EQ(sequence_of(0xFFFF'FFFF), 0u);
  EXPECT_EQ(sequence_of(0x1'0000'0000), 1u);
}

TEST(RingFormat, ConnectionPage) {
  ConnectionPage page{};
  page.magic = kConnectionMagic;
  page.format = kConnectionFormat;
  page.request_slots = 512;
  page.response_slots = 1024;
  page.response_rings = 16;
  page.request_credit = 0x0102;
  page.responses[0] = {0x0304, 1, {}};
  page.responses[15] = {0x0506, 1, {}};
  const std::string bytes(bytes_of(page));
  EXPECT_EQ(bytes.substr(0, 8), "ESPLRCON");
  EXPECT_EQ(bytes.substr(8, 16), "\1\0\0\0\0\2\0\0\0\4\0\0\x10\0\0\0"s);
  EXPECT_EQ(bytes.substr(24, 40), std::string(40, '\0'));
  EXPECT_EQ(bytes.substr(64, 8), "\2\1\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes.substr(128, 12), "\4\3\0\0\0\0\0\0\1\0\0\0"s);
  EXPECT_EQ(bytes.substr(1088, 12), "\6\5\0\0\0\0\0\0\1\0\0\0"s);
  EXPECT_EQ(sizeof page, 1152u);
}

TEST(RingFormat, WhereRingsLie) {
  constexpr ConnectionLayout kLayout{512, 1024, 16};
  EXPECT_EQ(kLayout.requests(), 4096u);
  EXPECT_EQ(kLayout.responses(0), 4096u + 32'768);
  EXPECT_EQ(kLayout.responses(1), 4096u + 32'768 + 65'536);
  EXPECT_EQ(kLayout.bytes(), 4096u + 32'768 + 16 * 65'536);
  EXPECT_EQ(kLayout.response_side(0), 128u);
  EXPECT_EQ(kLayout.response_side(15), 1088u);
  EXPECT_EQ((ConnectionLayout{65'536, 65'536, 16}.bytes()), 4096u + 17 * 4'194'304);
}

TEST(RingFormat, RingsThatCanBe) {
  EXPECT_TRUE((ConnectionLayout{64, 64, 1}.valid()));
  EXPECT_TRUE((ConnectionLayout{65'536, 65'536, 16}.valid()));
  EXPECT_FALSE((ConnectionLayout{}.valid()));
  for (const std::uint32_t lines : {0u, 1u, 32u, 63u, 65u, 96u, 131'072u, 0x8000'0000u, ~0u}) {
    EXPECT_FALSE((ConnectionLayout{lines, 64, 1}.valid())) << lines;
    EXPECT_FALSE((ConnectionLayout{64, lines, 1}.valid())) << lines;
  }
  EXPECT_FALSE((ConnectionLayout{64, 64, 0}.valid()));
  EXPECT_FALSE((ConnectionLayout{64, 64, 17}.valid()));
}

TEST(RingFormat, NodePage) {
  NodePage page{};
  page.magic = kNodePageMagic;
  page.format = 1;
  page.flags = kNodeAsymmetric;
  page.node_id = 0x0807060504030201;
  page.workers[61].sleeping = 1;
  const std::string bytes(bytes_of(page));
  EXPECT_EQ(bytes.substr(0, 8), "ESPLNODE");
  EXPECT_EQ(bytes.substr(8, 16), "\1\0\0\0\1\0\0\0\1\2\3\4\5\6\7\x08"s);
  EXPECT_EQ(bytes.substr(128 + 61 * 64, 4), "\1\0\0\0"s);
  EXPECT_EQ(kDoorbellsPerPage, 1024u);
}

TEST(RingFormat, RequestHeader) {
  const RequestHeader header{0x04030201, 0x08070605,         0x0C0B0A09, 0x0D,      0x0E,
                             0x100F,     0x1817161514131211, 0x1C1B1A19, 0x201F1E1D};
  std::string expected(32, '\0');
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<char>(i + 1);
  EXPECT_EQ(bytes_of(header), expected);
  EXPECT_EQ(kRequestKeyOffset, 32u);
  EXPECT_EQ(kRingBits, 0x0F);
  EXPECT_EQ(kHopBits, 0x30);
  EXPECT_EQ(kHopsMax << kHopShift, 0x20);
  EXPECT_EQ(kOnBehalf, 0x40);
  EXPECT_EQ(kAtSnapshot, 0x80);
  EXPECT_EQ(kMessageBytesMax, 33'554'432u);
}

TEST(RingFormat, ResponseHeader) {
  const ResponseHeader header{0x04030201, 0x08070605, 0x0C0B0A09,         0x0D,
                              0x0E,       0x100F,     0x1817161514131211, 0x201F1E1D1C1B1A19};
  std::string expected(32, '\0');
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<char>(i + 1);
  EXPECT_EQ(bytes_of(header), expected);
  EXPECT_EQ(static_cast<int>(ResponseKind::answer), 1);
  EXPECT_EQ(static_cast<int>(ResponseKind::chunk), 2);
  EXPECT_EQ(kFound, 1);
  EXPECT_EQ(kApplied, 2);
}

TEST(RingFormat, PayloadsOfMessages) {
  EXPECT_EQ(bytes_of(ItemHeader{0x0807060504030201, 0x0C0B0A09, 0x0E0D, 0}),
            "\1\2\3\4\5\6\7\x08\x09\x0A\x0B\x0C\x0D\x0E\0\0"s);
  EXPECT_EQ(bytes_of(Comparison{0x0807060504030201, 0x0C0B0A09, 0x0D, 0x0E, 0}),
            "\1\2\3\4\5\6\7\x08\x09\x0A\x0B\x0C\x0D\x0E\0\0"s);
  EXPECT_EQ(bytes_of(BatchEntry{0x0807060504030201, 0x0C0B0A09, 0x0E0D, 0x0F, 0}),
            "\1\2\3\4\5\6\7\x08\x09\x0A\x0B\x0C\x0D\x0E\x0F\0"s);
  EXPECT_EQ(bytes_of(MapShape{0x0807060504030201, 0x0C0B0A09, 0x100F0E0D, 0x11, 0x12, 0x1413,
                              0x18171615}),
            "\1\2\3\4\5\6\7\x08\x09\x0A\x0B\x0C\x0D\x0E\x0F\x10\x11\x12\x13\x14"
            "\x15\x16\x17\x18"s);
  MapNumbers numbers{};
  numbers.items = 1;
  numbers.snapshots = 2;
  EXPECT_EQ(bytes_of(numbers).substr(0, 2), "\1\0"s);
  EXPECT_EQ(bytes_of(numbers).substr(104), "\2\0\0\0\0\0\0\0"s);
}

TEST(RingFormat, NumbersOfANode) {
  NodeNumbersHeader header{};
  header.started_us = 1;
  header.uptime_ns = 2;
  header.version_bytes = 3;
  header.failure_bytes = 4;
  header.samples = 5;
  header.offloads = 6;
  header.workers = 7;
  header.holders = 8;
  header.principals = 9;
  EXPECT_EQ(bytes_of(header),
            "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6\0\0\0\7\0\0\0"s +
                "\x08\0\0\0\x09\0\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes_of(HolderEntry{1, 2, 3, 4, 5, 0}).substr(0, 20),
            "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0"s);
  OffloadNumbers offload{};
  offload.requests = 1;
  offload.durations[kDurationBuckets - 1] = 2;
  EXPECT_EQ(bytes_of(offload).substr(8, 8), "\1\0\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes_of(offload).substr(448), "\2\0\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes_of(WorkerNumbers{1, 2, 3, 4}),
            "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"s);
}

TEST(RingFormat, NumbersOfOffloadsAndBatchKinds) {
  EXPECT_EQ(static_cast<int>(OffloadId::noop), 1);
  EXPECT_EQ(static_cast<int>(OffloadId::get), 2);
  EXPECT_EQ(static_cast<int>(OffloadId::erase), 6);
  EXPECT_EQ(static_cast<int>(OffloadId::write_batch), 9);
  EXPECT_EQ(static_cast<int>(OffloadId::scan), 10);
  EXPECT_EQ(static_cast<int>(OffloadId::count_estimate), 15);
  EXPECT_EQ(static_cast<int>(OffloadId::map_create), 17);
  EXPECT_EQ(static_cast<int>(OffloadId::snapshot_close), 23);
  EXPECT_EQ(static_cast<int>(OffloadId::cancel), 24);
  EXPECT_EQ(static_cast<int>(OffloadId::node_stats), 25);
  EXPECT_EQ(static_cast<int>(OffloadId::range_borders), 102);
  EXPECT_EQ(static_cast<int>(OffloadId::datagram_open), 103);
  EXPECT_EQ(static_cast<int>(OffloadId::object_rename), 104);
  EXPECT_EQ(static_cast<int>(BatchKind::check), 1);
  EXPECT_EQ(static_cast<int>(BatchKind::put), 2);
  EXPECT_EQ(static_cast<int>(BatchKind::erase), 3);
  EXPECT_EQ(static_cast<int>(ConditionKind::absent), 1);
  EXPECT_EQ(static_cast<int>(ConditionKind::present), 2);
  EXPECT_EQ(static_cast<int>(ConditionKind::value), 3);
  EXPECT_EQ(static_cast<int>(ConditionKind::version), 4);
  EXPECT_EQ(condition_kind(0), ConditionKind::none);
  EXPECT_EQ(condition_kind(4), ConditionKind::version);
  EXPECT_EQ(condition_kind(5), std::nullopt);
  EXPECT_EQ(condition_kind(255), std::nullopt);
}

TEST(RingFormat, Handshake) {
  EXPECT_EQ(bytes_of(Hello{kHelloMagic, kProtocolVersion, 512, 1024, 16}),
            "ESPLHLLO\1\0\0\0\0\2\0\0\0\4\0\0\x10\0\0\0"s);
  const Welcome welcome{kHelloMagic, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(bytes_of(welcome),
            "ESPLHLLO\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6\0\0\0\7\0\0\0\x08"
            "\0\0\0\x09\0\0\0\0\0\0\0"s);
  EXPECT_EQ(static_cast<int>(SocketByte::wake), 1);
  EXPECT_EQ(static_cast<int>(SocketByte::stopping), 2);
  EXPECT_EQ(static_cast<int>(SocketByte::broken), 3);
}

TEST(Format, FabricGreeting) {
  const FabricGreeting greeting{kFabricGreetingMagic,
                                kFabricGreetingVersion,
                                7,
                                0x0123'4567'89AB'C000,
                                0x1'0000,
                                0xA1B2C3D4,
                                0x4000};
  EXPECT_EQ(bytes_of(greeting),
            "ESFBGRET\x01\0\0\0\x07\0\0\0"
            "\0\xC0\xAB\x89\x67\x45\x23\x01\0\0\x01\0\0\0\0\0"
            "\xD4\xC3\xB2\xA1\0\x40\0\0"s);
}

}  // namespace
}  // namespace espalier::wire
