// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/packet.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "fabric/roce/testing/sample_packets.hpp"

namespace espalier::fabric::roce {
namespace {

using std::string_literals::operator""s;

std::string packet_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string headers_text(const Headers& headers) {
  std::byte bytes[wire::roce::kHeadersBytesMax];
  return packet_text(std::span(bytes).first(write_headers(bytes, headers)));
}

const Bth kBth{.opcode = PacketOpcode::read_request,
               .solicited = true,
               .migrated = false,
               .pad = 0,
               .partition = 0x1234,
               .forward_congestion = false,
               .backward_congestion = true,
               .ask_acknowledge = true,
               .destination = 0xABCDEF,
               .psn = 0x012345};

Bth bth(PacketOpcode opcode) {
  Bth made = kBth;
  made.opcode = opcode;
  return made;
}

// What follows the opcode in every golden packet here.
const std::string kBthRest = "\x80\x12\x34\x40\xAB\xCD\xEF\x80\x01\x23\x45"s;

TEST(RocePacket, GoldenBytesOfRequests) {
  const Reth reth{0x0102030405060708, 0x11121314, 0x00001000};
  const std::string reth_text = "\1\2\3\4\5\6\7\x08\x11\x12\x13\x14\0\0\x10\0"s;
  EXPECT_EQ(headers_text({.bth = kBth, .reth = reth}), "\x0C" + kBthRest + reth_text);
  EXPECT_EQ(headers_text({.bth = bth(PacketOpcode::write_first), .reth = reth}),
            "\x06" + kBthRest + reth_text);
  EXPECT_EQ(headers_text({.bth = bth(PacketOpcode::write_only_immediate),
                          .reth = reth,
                          .immediate = {0xA0A1A2A3}}),
            "\x0B" + kBthRest + reth_text + "\xA0\xA1\xA2\xA3");
  EXPECT_EQ(headers_text({.bth = bth(PacketOpcode::compare_swap),
                          .atomic = {0x0102030405060708, 0x11121314, 0x2122232425262728,
                                     0x3132333435363738}}),
            "\x13" + kBthRest + "\1\2\3\4\5\6\7\x08\x11\x12\x13\x14" +
                "\x21\x22\x23\x24\x25\x26\x27\x28\x31\x32\x33\x34\x35\x36\x37\x38");
  EXPECT_EQ(headers_text({.bth = bth(PacketOpcode::send_only_immediate), .immediate = {1}}),
            "\5" + kBthRest + "\0\0\0\1"s);
  EXPECT_EQ(
      headers_text({.bth = bth(PacketOpcode::datagram_send_only), .deth = {0x80010000, 0x000001}}),
      "\x64" + kBthRest + "\x80\1\0\0\0\0\0\1"s);
}

TEST(RocePacket, GoldenBytesOfAnswers) {
  EXPECT_EQ(headers_text({.bth = bth(PacketOpcode::acknowledge), .aeth = Aeth::ack(0xA1A2A3)}),
            "\x11" + kBthRest + "\x1F\xA1\xA2\xA3");
  EXPECT_EQ(headers_text({.bth = bth(PacketOpcode::acknowledge), .aeth = Aeth::rnr(1, 12)}),
            "\x11" + kBthRest + "\x2C\0\0\1"s);
  EXPECT_EQ(headers_text({.bth = bth(PacketOpcode::acknowledge),
                          .aeth = Aeth::nak(2, NakCode::remote_access)}),
            "\x11" + kBthRest + "\x62\0\0\2"s);
  EXPECT_EQ(headers_text({.bth = bth(PacketOpcode::atomic_acknowledge),
                          .aeth = Aeth::ack(3),
                          .atomic_ack = {0x0102030405060708}}),
            "\x12" + kBthRest + "\x1F\0\0\3\1\2\3\4\5\6\7\x08"s);
  EXPECT_EQ(headers_text({.bth = bth(PacketOpcode::read_response_middle)}), "\x0E" + kBthRest);

  const Bytes payload(5, std::byte{'x'});
  Bytes whole(packet_bytes(PacketOpcode::read_response_only, payload.size()), std::byte{0xEE});
  const std::size_t bytes = write_packet(
      whole.data(), {.bth = bth(PacketOpcode::read_response_only), .aeth = Aeth::ack(4)}, payload);
  EXPECT_EQ(bytes + 4, whole.size());
  EXPECT_EQ(packet_text(whole), "\x10\xB0\x12\x34\x40\xAB\xCD\xEF\x80\x01\x23\x45\x1F\0\0\4xxxxx"s +
                                    "\0\0\0\xEE\xEE\xEE\xEE"s);
}

TEST(RocePacket, OfAllBytesTwentyTwoAreOpcodesOfOurs) {
  const auto known = sample::all_opcodes();
  const std::set<PacketOpcode> expected(known.begin(), known.end());
  for (unsigned i = 0; i < 256; ++i) {
    const auto opcode = static_cast<PacketOpcode>(i);
    EXPECT_EQ(parts_of(opcode).known(), expected.contains(opcode)) << i;
    Bytes bytes(200);
    bytes[0] = static_cast<std::byte>(i);
    EXPECT_LE(parse(bytes).has_value(), expected.contains(opcode)) << i;
  }
}

TEST(RocePacket, WhatIsWrittenIsRead) {
  base::Random random(base::seed_from_environment(41));
  for (int round = 0; round < 300; ++round) {
    for (const PacketOpcode opcode : sample::all_opcodes()) {
      const bool may = parts_of(opcode).has(Parts::kPayload);
      const Bytes payload = sample::draw_bytes(random, may ? random.below(70) : 0);
      const Headers headers = sample::headers(random, opcode, payload.size());
      Bytes bytes = sample::packet(headers, payload);
      const auto icrc = sample::draw<std::uint32_t>(random);
      base::store_le(bytes.data() + bytes.size() - 4, icrc);
      const auto packet = parse(bytes);
      ASSERT_TRUE(packet) << static_cast<int>(opcode);
      EXPECT_EQ(static_cast<const Headers&>(*packet), headers) << static_cast<int>(opcode);
      EXPECT_EQ(packet_text(packet->payload), packet_text(payload));
      EXPECT_EQ(packet->icrc, icrc);
    }
  }
}

TEST(RocePacket, WiderNumbersLoseTheirUpperBitsAndTouchNoOtherField) {
  Headers headers{.bth = kBth, .aeth = {0x1F, 0xFF000001}};
  headers.bth = bth(PacketOpcode::acknowledge);
  headers.bth.destination |= 0xFF000000;
  headers.bth.psn |= 0xFF000000;
  headers.bth.pad = 0;
  EXPECT_EQ(headers_text(headers), "\x11" + kBthRest + "\x1F\0\0\1"s);
}

TEST(RocePacket, ReservedBitsAreNotLookedAt) {
  Bytes bytes = sample::packet({.bth = kBth, .reth = {1, 2, 3}}, {});
  bytes[4] |= std::byte{0x3F};
  bytes[8] |= std::byte{0x7F};
  const auto packet = parse(bytes);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->bth, kBth);
}

TEST(RocePacket, RefusesWhatIsNoPacket) {
  const Bytes request = sample::packet({.bth = kBth, .reth = {1, 2, 3}}, {});
  ASSERT_TRUE(parse(request));
  const auto refused = [&request](std::size_t at, std::uint8_t value) {
    Bytes changed = request;
    changed[at] = std::byte{value};
    return !parse(changed);
  };
  EXPECT_TRUE(refused(1, 0x81)) << "transport version";
  EXPECT_TRUE(refused(1, 0x90)) << "a pad and no payload";
  EXPECT_TRUE(refused(0, 0x15)) << "an opcode that is not ours";
  EXPECT_TRUE(refused(0, 0x81)) << "congestion notification";
  EXPECT_TRUE(refused(0, 0x13)) << "too short for an atomic";
  EXPECT_TRUE(refused(0, 0x11)) << "an acknowledgement with a payload";
  Bytes longer = request;
  longer.resize(request.size() + 4);
  EXPECT_FALSE(parse(longer)) << "a READ request with a payload";
  Bytes padded(20);  // SEND only, one word of payload
  padded[0] = std::byte{4};
  padded[1] = std::byte{0x30};
  ASSERT_TRUE(parse(padded));
  EXPECT_EQ(parse(padded)->payload.size(), 1u);
  padded.resize(16);
  EXPECT_FALSE(parse(padded)) << "a pad and an empty payload";
  padded[1] = std::byte{0};
  EXPECT_TRUE(parse(padded)) << "an empty message";
}

TEST(RocePacket, EveryPrefixIsRefusedOrWithinItsBytes) {
  base::Random random(base::seed_from_environment(42));
  for (const PacketOpcode opcode : sample::all_opcodes()) {
    const Bytes whole = sample::packet(random, opcode, 40);
    const Parts parts = parts_of(opcode);
    for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
      const Bytes prefix(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
      const auto packet = parse(prefix);
      if (bytes % 4 != 0 || bytes < parts.header_bytes + std::size_t{4}) {
        EXPECT_FALSE(packet);
      }
      if (!packet) continue;
      EXPECT_EQ(parts.header_bytes + packet->payload.size() + packet->bth.pad + 4, bytes);
      EXPECT_EQ(packet->payload.data(), prefix.data() + parts.header_bytes);
    }
  }
}

TEST(RocePacket, AnyBytesAreReadSafelyAndWrittenAsTheyWere) {
  base::Random random(base::seed_from_environment(43));
  const auto opcodes = sample::all_opcodes();
  int parsed = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = sample::packet(random, opcodes[random.below(opcodes.size())], 30);
    for (auto changes = random.below(4); changes != 0; --changes) {
      bytes[random.below(random.chance(0.5) ? 2 : bytes.size())] = sample::draw<std::byte>(random);
    }
    bytes.resize(random.chance(0.2) ? random.below(bytes.size() + 1) : bytes.size());
    const auto packet = parse(bytes);
    if (!packet) continue;
    ++parsed;
    const Bytes again = sample::packet(*packet, packet->payload);
    const auto reread = parse(again);
    ASSERT_TRUE(reread);
    ASSERT_EQ(static_cast<const Headers&>(*reread), static_cast<const Headers&>(*packet));
    ASSERT_EQ(packet_text(reread->payload), packet_text(packet->payload));
  }
  EXPECT_GT(parsed, 5'000);
}

TEST(RocePacket, Syndromes) {
  EXPECT_EQ(Aeth::ack(0).kind(), Aeth::Kind::ack);
  EXPECT_EQ(Aeth::ack(0).value(), 31);
  EXPECT_EQ(Aeth::ack(0, 5).syndrome, 5);
  EXPECT_EQ(Aeth::rnr(0, 31).syndrome, 0x3F);
  EXPECT_EQ(Aeth::rnr(0, 31).kind(), Aeth::Kind::rnr);
  EXPECT_EQ(Aeth::nak(0, NakCode::sequence_error).syndrome, 0x60);
  EXPECT_EQ(Aeth::nak(0, NakCode::remote_operational).syndrome, 0x63);
  EXPECT_EQ(Aeth::nak(0, NakCode::invalid_request).kind(), Aeth::Kind::nak);
  EXPECT_EQ((Aeth{0x45, 0}.kind()), Aeth::Kind::reserved);
}

TEST(RocePacket, TimersOfReceiversThatAreNotReady) {
  EXPECT_EQ(rnr_timer_ns(1), 10'000u);
  EXPECT_EQ(rnr_timer_ns(12), 640'000u);
  EXPECT_EQ(rnr_timer_ns(31), 491'520'000u);
  EXPECT_EQ(rnr_timer_ns(0), 655'360'000u);
  EXPECT_EQ(rnr_timer_ns(32 + 1), 10'000u);
  EXPECT_EQ(rnr_timer(0), 1);
  EXPECT_EQ(rnr_timer(600'000), 12);
  EXPECT_EQ(rnr_timer(491'520'001), 0);
  EXPECT_EQ(rnr_timer(~std::uint64_t{0}), 0);
  for (std::uint8_t timer = 0; timer < 32; ++timer)
    EXPECT_EQ(rnr_timer(rnr_timer_ns(timer)), timer);
  for (std::uint8_t timer = 2; timer < 32; ++timer) {
    EXPECT_GT(rnr_timer_ns(timer), rnr_timer_ns(timer - 1));
  }
}

TEST(RocePacket, SequenceNumbersGoRound) {
  EXPECT_EQ(psn_plus(0xFFFFFF, 1), 0u);
  EXPECT_EQ(psn_distance(0xFFFFFF, 0), 1);
  EXPECT_EQ(psn_distance(0, 0xFFFFFF), -1);
  EXPECT_EQ(psn_distance(0, 0x7FFFFF), 0x7FFFFF);
  EXPECT_EQ(psn_distance(0, 0x800000), -0x800000);
  EXPECT_EQ(psn_distance(5, 5), 0);
}

}  // namespace
}  // namespace espalier::fabric::roce
