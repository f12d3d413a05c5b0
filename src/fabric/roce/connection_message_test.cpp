// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/connection_message.hpp"

#include <gtest/gtest.h>

#include <string>

#include "fabric/roce/ip_service.hpp"
#include "fabric/roce/testing/sample_packets.hpp"

namespace espalier::fabric::roce {
namespace {

using std::string_literals::operator""s;
using wire::roce::kMadBytes;

std::string message_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string message_text(const ConnectionMessage& message) {
  std::byte bytes[kMadBytes];
  write_message(bytes, message);
  return message_text(bytes);
}

std::string mad_header(char attribute) {
  return "\1\7\2\3\0\0\0\0\1\2\3\4\5\6\7\x08\0"s + attribute + "\0\0\0\0\0\0"s;
}
constexpr std::uint64_t kTransaction = 0x0102030405060708;
const std::string kIds = "\x11\x12\x13\x14\x21\x22\x23\x24"s;
constexpr ConnectionIds kBothIds{0x11121314, 0x21222324};

TEST(RoceConnectionMessage, GoldenBytesOfRequest) {
  RequestMessage request;
  request.ids.local = 0x11121314;
  request.service_id = service_id(4420);
  request.local_ca_guid = 0xA1A2A3A4A5A6A7A8;
  request.local_queue_key = 0xB1B2B3B4;
  request.local_pair = 0xC1C2C3;
  request.responder_resources = 16;
  request.initiator_depth = 15;
  request.starting_psn = 0xD1D2D3;
  request.flow_control = true;
  request.remote_response_timeout = 20;
  request.local_response_timeout = 19;
  request.retries = 7;
  request.receive_retries = 6;
  request.message_retries = 15;
  request.mtu = mtu_code(4096);
  request.shared_receives = true;
  request.local_gid = IpAddress::v4(10, 0, 0, 1).gid();
  request.remote_gid = IpAddress::v4(10, 0, 0, 2).gid();
  request.flow_label = 0x12345;
  request.packet_rate = 7;
  request.traffic_class = 0xE1;
  request.hop_limit = 64;
  request.service_level = 3;
  request.subnet_local = true;
  request.local_ack_timeout = 14;
  set_ip_service(request, {0x1122, IpAddress::v4(10, 0, 0, 1), IpAddress::v4(10, 0, 0, 2)});
  const std::string mine = "hello";
  set_request_data(request, std::as_bytes(std::span(mine)));
  const std::string gid = std::string(10, '\0') + "\xFF\xFF\x0A\0\0"s;
  EXPECT_EQ(message_text({kTransaction, request}),
            mad_header(0x10) + "\x11\x12\x13\x14\0\0\0\0\0\0\0\0\1\6\x11\x44"s +
                "\xA1\xA2\xA3\xA4\xA5\xA6\xA7\xA8\0\0\0\0\xB1\xB2\xB3\xB4"s +
                "\xC1\xC2\xC3\x10\0\0\0\x0F\0\0\0\xA1\xD1\xD2\xD3\x9F\xFF\xFF\x56\xF8"s +
                "\xFF\xFF\xFF\xFF"s + gid + "\1" + gid + "\2" + "\x12\x34\x50\7\xE1\x40\x38\x70"s +
                std::string(44, '\0') + "\0\x40\x11\x22"s + std::string(12, '\0') + "\x0A\0\0\1"s +
                std::string(12, '\0') + "\x0A\0\0\2"s + mine + std::string(51, '\0'));
}

TEST(RoceConnectionMessage, GoldenBytesOfAnswers) {
  ReplyMessage reply{.ids = kBothIds,
                     .local_queue_key = 0xB1B2B3B4,
                     .local_pair = 0xC1C2C3,
                     .starting_psn = 0xD1D2D3,
                     .responder_resources = 4,
                     .initiator_depth = 5,
                     .ack_delay = 15,
                     .receive_retries = 5,
                     .local_ca_guid = 0xA1A2A3A4A5A6A7A8};
  reply.private_data[0] = std::byte{'x'};
  EXPECT_EQ(message_text({kTransaction, reply}),
            mad_header(0x13) + kIds + "\xB1\xB2\xB3\xB4\xC1\xC2\xC3\0\0\0\0\0\xD1\xD2\xD3\0"s +
                "\4\5\x7A\xA0\xA1\xA2\xA3\xA4\xA5\xA6\xA7\xA8x"s + std::string(195, '\0'));
  EXPECT_EQ(message_text({kTransaction, ReadyMessage{.ids = kBothIds}}),
            mad_header(0x14) + kIds + std::string(224, '\0'));
  EXPECT_EQ(
      message_text({kTransaction, DisconnectMessage{.ids = kBothIds, .remote_pair = 0xABCDEF}}),
      mad_header(0x15) + kIds + "\xAB\xCD\xEF"s + std::string(221, '\0'));
  EXPECT_EQ(message_text({kTransaction, DisconnectedMessage{.ids = kBothIds}}),
            mad_header(0x16) + kIds + std::string(224, '\0'));
  RejectMessage reject{.ids = kBothIds,
                       .rejected = ConnectionStep::other,
                       .reason = RejectReason::consumer_reject,
                       .information_bytes = 3};
  reject.information[2] = std::byte{'i'};
  reject.private_data[147] = std::byte{'p'};
  EXPECT_EQ(message_text({kTransaction, reject}),
            mad_header(0x12) + kIds + "\x80\6\0\x1C\0\0i"s + std::string(69 + 147, '\0') + "p");
}

TEST(RoceConnectionMessage, GoldenBytesOfACookie) {
  RejectMessage reject{.ids = {0, 0x21222324}};
  set_cookie(reject, 0xA1A2A3A4A5A6A7A8);
  EXPECT_EQ(message_text({kTransaction, reject}),
            mad_header(0x12) + "\0\0\0\0\x21\x22\x23\x24\0\0\0\3"s + std::string(72, '\0') +
                "ESPLCOOK\xA1\xA2\xA3\xA4\xA5\xA6\xA7\xA8"s + std::string(132, '\0'));
  EXPECT_EQ(cookie_of(reject), 0xA1A2A3A4A5A6A7A8u);
  reject.reason = RejectReason::consumer_reject;
  EXPECT_EQ(cookie_of(reject), 0u) << "an application says what it likes";
}

TEST(RoceConnectionMessage, WhatIsWrittenIsRead) {
  base::Random random(base::seed_from_environment(71));
  for (int round = 0; round < 300; ++round) {
    for (ConnectionMessage& message : sample::messages(random)) {
      const Bytes ib = sample::packet(message, 5);
      const auto packet = parse(ib);
      ASSERT_TRUE(packet);
      EXPECT_EQ(packet->deth, (Deth{0x80010000, 1}));
      EXPECT_EQ(packet->bth.destination, 1u);
      const auto read = parse_message(*packet);
      ASSERT_TRUE(read);
      EXPECT_EQ(*read, message);
    }
  }
}

TEST(RoceConnectionMessage, RefusesWhatIsNoMessage) {
  base::Random random(base::seed_from_environment(72));
  for (const ConnectionMessage& message : sample::messages(random)) {
    Bytes mad(kMadBytes);
    write_message(mad.data(), message);
    for (std::size_t bytes = 0; bytes < mad.size(); ++bytes) {
      ASSERT_FALSE(parse_message(std::span<const std::byte>(mad).first(bytes)));
    }
    const auto refused = [&mad](std::size_t at, std::uint8_t value) {
      Bytes changed = mad;
      changed[at] = std::byte{value};
      return !parse_message(changed);
    };
    EXPECT_TRUE(refused(0, 2)) << "base version";
    EXPECT_TRUE(refused(1, 3)) << "class";
    EXPECT_TRUE(refused(2, 1)) << "class version";
    EXPECT_TRUE(refused(3, 0x83)) << "method";
    EXPECT_TRUE(refused(16, 1)) << "attribute";
    EXPECT_TRUE(refused(17, 0x17)) << "attribute";
    const bool request = message.body.index() == 0;
    EXPECT_EQ(refused(24 + 50, 0), request) << "MTU";
    EXPECT_EQ(refused(24 + 50, 0x60), request) << "MTU";
    const bool reject = std::holds_alternative<RejectMessage>(message.body);
    EXPECT_EQ(refused(24 + 9, 73 << 1), reject) << "length of the information";
    mad.push_back({});
    EXPECT_FALSE(parse_message(mad));
  }
}

TEST(RoceConnectionMessage, OnlyInDatagramsToPairOneWithTheRightKey) {
  base::Random random(base::seed_from_environment(73));
  const Bytes ib = sample::packet(sample::messages(random)[0], 5);
  Packet packet = *parse(ib);
  ASSERT_TRUE(parse_message(packet));
  packet.bth.destination = 2;
  EXPECT_FALSE(parse_message(packet));
  packet = *parse(ib);
  packet.deth.queue_key = 0x80010001;
  EXPECT_FALSE(parse_message(packet));
  packet = *parse(ib);
  packet.bth.opcode = PacketOpcode::send_only;
  EXPECT_FALSE(parse_message(packet));
}

TEST(RoceConnectionMessage, AnyBytesAreReadSafelyAndWrittenAsTheyWere) {
  base::Random random(base::seed_from_environment(74));
  const auto messages = sample::messages(random);
  for (int round = 0; round < 5000; ++round) {
    Bytes mad(kMadBytes);
    write_message(mad.data(), messages[random.below(messages.size())]);
    for (auto changes = random.below(6); changes != 0; --changes) {
      mad[random.chance(0.3) ? 17 : random.below(kMadBytes)] = sample::draw<std::byte>(random);
    }
    const auto message = parse_message(mad);
    if (!message) continue;
    Bytes again(kMadBytes);
    write_message(again.data(), *message);
    ASSERT_EQ(parse_message(again), message);
  }
}

TEST(RoceConnectionMessage, Services) {
  base::Random random(base::seed_from_environment(75));
  EXPECT_EQ(service_id(4791), 0x00000000010612B7u);
  EXPECT_EQ(service_port(0x00000000010612B7), 4791);
  EXPECT_EQ(service_port(0x00000000011112B7), std::nullopt);
  EXPECT_EQ(service_port(0x10000000010612B7), std::nullopt);
  for (const bool is_v6 : {false, true}) {
    RequestMessage request = sample::request(random);
    const IpService service{4791, sample::address(random, is_v6), sample::address(random, is_v6)};
    set_ip_service(request, service);
    EXPECT_EQ(ip_service(request), service);
    const Bytes mine = sample::draw_bytes(random, kRequestDataBytes);
    set_request_data(request, mine);
    EXPECT_EQ(message_text(request_data(request)), message_text(mine));
    EXPECT_EQ(ip_service(request), service);
    request.private_data[1] = std::byte{0x50};
    EXPECT_FALSE(ip_service(request));
    request.private_data[1] = std::byte{0x40};
    EXPECT_TRUE(ip_service(request));
    request.private_data[0] = std::byte{0x10};
    EXPECT_FALSE(ip_service(request));
  }
}

TEST(RoceConnectionMessage, CodesOfSizesAndTimes) {
  EXPECT_EQ(mtu_bytes(3), 1024u);
  EXPECT_EQ(mtu_bytes(5), 4096u);
  EXPECT_EQ(mtu_bytes(0), 0u);
  EXPECT_EQ(mtu_bytes(6), 0u);
  EXPECT_EQ(mtu_code(1024), 3);
  EXPECT_EQ(mtu_code(1500), 3);
  EXPECT_EQ(mtu_code(9000), 5);
  EXPECT_EQ(mtu_code(255), 0);
  EXPECT_EQ(timeout_ns(0), 4096u);
  EXPECT_EQ(timeout_ns(14), 67'108'864u);
  EXPECT_EQ(timeout_code(0), 0);
  EXPECT_EQ(timeout_code(4097), 1);
  EXPECT_EQ(timeout_code(~std::uint64_t{0}), 31);
}

}  // namespace
}  // namespace espalier::fabric::roce
