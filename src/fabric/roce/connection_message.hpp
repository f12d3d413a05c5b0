// SPDX-License-Identifier: Apache-2.0
// The messages that establish and terminate reliable connections, parsed: REQ, REP, RTU, then DREQ
// and DREP, and REJ in between; fabric/roce/connection_format.hpp draws their bytes.
//
// Their layout is that of a network card's connection manager. Two values are ours: LIDs are
// 0xFFFF, as always on Ethernet, and there is one path, so the alternate one is 0.
//
// Private data always have their full length, zeros at the end; the application knows how long they
// were meant to be. Those of a REQ begin with the addresses: ip_service.hpp.
// Thread: plain values and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "fabric/roce/connection_format.hpp"
#include "fabric/roce/packet.hpp"

namespace espalier::fabric::roce {

using wire::roce::RejectReason;

/// Both sides number their connections, and name them by both numbers. In REQ the second is 0.
struct ConnectionIds {
  std::uint32_t local = 0;  // of the sender of the message
  std::uint32_t remote = 0;
  friend constexpr bool operator==(const ConnectionIds&, const ConnectionIds&) = default;
};

/// 256 to 4096 bytes have the codes 1 to 5.
[[nodiscard]] constexpr std::uint32_t mtu_bytes(std::uint8_t code) {
  return code >= 1 && code <= 5 ? 128u << code : 0;
}
/// The code of the largest MTU that is not above this one; 0 below 256.
[[nodiscard]] constexpr std::uint8_t mtu_code(std::uint32_t bytes) {
  std::uint8_t code = 5;
  while (code != 0 && mtu_bytes(code) > bytes) --code;
  return code;
}
/// How long timeout `code`, of 5 bits, is: 4.096 us times two to the code.
[[nodiscard]] constexpr std::uint64_t timeout_ns(std::uint8_t code) {
  return std::uint64_t{4096} << (code & 31);
}
/// The code of the shortest timeout that is not shorter, else 31.
[[nodiscard]] constexpr std::uint8_t timeout_code(std::uint64_t at_least_ns) {
  std::uint8_t code = 0;
  while (code < 31 && timeout_ns(code) < at_least_ns) ++code;
  return code;
}

/// REQ.
struct RequestMessage {
  ConnectionIds ids{};
  std::uint64_t service_id = 0;
  std::uint64_t local_ca_guid = 0;
  std::uint32_t local_queue_key = 0;
  std::uint32_t local_pair = 0;
  std::uint8_t responder_resources = 0;  // READs and atomics that the sender serves at a time
  std::uint8_t initiator_depth = 0;      // and that it asks for
  std::uint32_t starting_psn = 0;
  std::uint8_t transport_service = 0;         // 2 bits; 0: reliable connection
  bool flow_control = false;                  // counts credits
  std::uint8_t remote_response_timeout = 20;  // codes of timeout_ns(): of the receiver's answer,
  std::uint8_t local_response_timeout = 20;   // of the sender's to that
  std::uint8_t retries = 7;                   // 3 bits
  std::uint8_t receive_retries = 7;           // 3 bits; 7: for ever
  std::uint8_t message_retries = 15;          // 4 bits; of messages such as this
  std::uint16_t partition = wire::roce::kDefaultPartition;
  std::uint8_t mtu = 0;  // code of mtu_bytes()
  bool shared_receives = false;
  std::array<std::uint8_t, 16> local_gid{};
  std::array<std::uint8_t, 16> remote_gid{};
  std::uint32_t flow_label = 0;
  std::uint8_t packet_rate = 0;  // 6 bits
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  std::uint8_t service_level = 0;
  bool subnet_local = false;
  std::uint8_t local_ack_timeout = 0;  // code of timeout_ns()
  std::array<std::byte, 92> private_data{};
  friend constexpr bool operator==(const RequestMessage&, const RequestMessage&) = default;
};

/// REP.
struct ReplyMessage {
  ConnectionIds ids{};
  std::uint32_t local_queue_key = 0;
  std::uint32_t local_pair = 0;
  std::uint32_t starting_psn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t ack_delay = 0;  // code of timeout_ns()
  std::uint8_t failover = 1;   // 2 bits; 1: there is no other path to fail over to
  bool flow_control = false;
  std::uint8_t receive_retries = 7;
  bool shared_receives = false;
  std::uint64_t local_ca_guid = 0;
  std::array<std::byte, 196> private_data{};
  friend constexpr bool operator==(const ReplyMessage&, const ReplyMessage&) = default;
};

/// RTU.
struct ReadyMessage {
  ConnectionIds ids{};
  std::array<std::byte, 224> private_data{};
  friend constexpr bool operator==(const ReadyMessage&, const ReadyMessage&) = default;
};

/// The message that a REJ or an MRA answers.
enum class ConnectionStep : std::uint8_t { request = 0, reply = 1, other = 2, unused = 3 };

/// REJ.
struct RejectMessage {
  ConnectionIds ids{};
  ConnectionStep rejected = ConnectionStep::request;
  RejectReason reason = RejectReason::consumer_reject;  // others may come
  std::uint8_t information_bytes = 0;
  std::array<std::byte, 72> information{};
  std::array<std::byte, 148> private_data{};
  friend constexpr bool operator==(const RejectMessage&, const RejectMessage&) = default;
};

/// The cookie in a REJ that asks for its return (connection_cookies.hpp); 0: it is no such REJ.
[[nodiscard]] std::uint64_t cookie_of(const RejectMessage& reject);
void set_cookie(RejectMessage& reject, std::uint64_t cookie);
/// What a REQ brings: a cookie, or the GUID of a network card; 0: neither.
[[nodiscard]] constexpr std::uint64_t cookie_of(const RequestMessage& request) {
  return request.local_ca_guid;
}
constexpr void set_cookie(RequestMessage& request, std::uint64_t cookie) {
  request.local_ca_guid = cookie;
}

/// DREQ.
struct DisconnectMessage {
  ConnectionIds ids{};
  std::uint32_t remote_pair = 0;
  std::array<std::byte, 220> private_data{};
  friend constexpr bool operator==(const DisconnectMessage&, const DisconnectMessage&) = default;
};

/// What a side that gives up reports in it: the length of the packet that did not get through, as
/// QueuePair::undelivered_bytes(); 0: another reason. Cards leave it 0.
[[nodiscard]] std::uint32_t undelivered_bytes(const DisconnectMessage& message);
void set_undelivered_bytes(DisconnectMessage& message, std::uint32_t bytes);

/// DREP.
struct DisconnectedMessage {
  ConnectionIds ids{};
  std::array<std::byte, 224> private_data{};
  friend constexpr bool operator==(const DisconnectedMessage&,
                                   const DisconnectedMessage&) = default;
};

/// MRA. Cards send it when their application takes long; this side only reads it.
struct ReceiptMessage {
  ConnectionIds ids{};
  ConnectionStep received = ConnectionStep::request;
  std::uint8_t service_timeout = 0;  // code of timeout_ns()
  std::array<std::byte, 222> private_data{};
  friend constexpr bool operator==(const ReceiptMessage&, const ReceiptMessage&) = default;
};

struct ConnectionMessage {
  std::uint64_t transaction = 0;  // an answer has that of its question
  std::variant<RequestMessage, ReplyMessage, ReadyMessage, RejectMessage, DisconnectMessage,
               DisconnectedMessage, ReceiptMessage>
      body;
  friend constexpr bool operator==(const ConnectionMessage&, const ConnectionMessage&) = default;
};

/// Reads a management datagram. Nothing if it is none of these: another length, version, class,
/// method or attribute, or with a field that no sender can mean (an MTU code, more information than
/// there is room for). Reserved fields may be anything.
[[nodiscard]] std::optional<ConnectionMessage> parse_message(std::span<const std::byte> mad);
/// Writes one of wire::roce::kMadBytes. Requires: room.
void write_message(std::byte* to, const ConnectionMessage& message);

/// The message in a packet: a datagram to pair 1 with the right queue key.
[[nodiscard]] std::optional<ConnectionMessage> parse_message(const Packet& packet);
/// Bytes of a packet with a message, ICRC counted.
inline constexpr std::size_t kMessagePacketBytes = sizeof(wire::roce::BthBytes) +
                                                   sizeof(wire::roce::DethBytes) +
                                                   wire::roce::kMadBytes + wire::roce::kIcrcBytes;
/// Writes the whole packet but for its ICRC, which is yet to come (Icrc::seal). Returns the bytes
/// written: kMessagePacketBytes less 4. Datagrams have PSNs too, which no receiver checks.
std::size_t write_message_packet(std::byte* to, const ConnectionMessage& message,
                                 std::uint32_t psn);

}  // namespace espalier::fabric::roce
