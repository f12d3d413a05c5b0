// SPDX-License-Identifier: Apache-2.0
// The wire format of connection management: the messages that establish and terminate reliable
// connections [IBTA Volume 1, chapter 12; Annex A11 for what applications with IP addresses add].
//
// A message is a management datagram of 256 bytes, the payload of a datagram SEND to queue pair 1.
// It begins with this header; what its attribute says follows, and private data ends it:
//
//   0              1         2         3        4        6     8             16
//   +--------------+---------+---------+--------+--------+-----+-------------+
//   | base version | class 7 | version | method | status | 0   | transaction |
//   +--------------+---------+---------+--------+--------+-----+-------------+
//   16          18   20         24                                          256
//   +-----------+----+----------+-------------------------------------------+
//   | attribute | 0  | modifier | the message                               |
//   +-----------+----+----------+-------------------------------------------+
//
// All numbers are big-endian. Fields of fewer than 8 bits are named after the byte that they share,
// the highest bits first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::wire::roce {

inline constexpr std::uint32_t kConnectionPair = 1;
inline constexpr std::uint32_t kConnectionQueueKey = 0x8001'0000;
inline constexpr std::size_t kMadBytes = 256;

inline constexpr std::uint8_t kMadBaseVersion = 1;
inline constexpr std::uint8_t kMadClassConnection = 7;
inline constexpr std::uint8_t kMadClassVersion = 2;
inline constexpr std::uint8_t kMadMethodSend = 3;

/// What a message is.
enum class ConnectionAttribute : std::uint16_t {
  request = 0x0010,             // REQ
  message_receipt = 0x0011,     // MRA: the answer is delayed
  reject = 0x0012,              // REJ
  reply = 0x0013,               // REP
  ready_to_use = 0x0014,        // RTU
  disconnect_request = 0x0015,  // DREQ
  disconnect_reply = 0x0016,    // DREP
};

/// Why a connection is rejected [IBTA table 111]; the reasons that are used here.
enum class RejectReason : std::uint16_t {
  no_queue_pair = 1,
  no_resources = 3,
  timeout = 4,
  unsupported_request = 5,
  invalid_communication_id = 6,
  invalid_communication_instance = 7,
  invalid_service_id = 8,
  invalid_transport_service_type = 9,
  stale_connection = 10,
  invalid_path_mtu = 26,
  consumer_reject = 28,
};

/// Service ids that name ports as TCP does: the port is the low half.
inline constexpr std::uint64_t kTcpPortSpace = 0x0000'0000'0106'0000;
inline constexpr std::uint64_t kServiceIdPortMask = 0xFFFF;

struct MadBytes {
  std::uint8_t base_version;
  std::uint8_t management_class;
  std::uint8_t class_version;
  std::uint8_t method;
  std::uint8_t status[2];
  std::uint8_t class_specific[2];
  std::uint8_t transaction[8];
  std::uint8_t attribute[2];
  std::uint8_t reserved[2];
  std::uint8_t modifier[4];
};
static_assert(sizeof(MadBytes) == 24 && offsetof(MadBytes, transaction) == 8);
static_assert(offsetof(MadBytes, attribute) == 16 && offsetof(MadBytes, modifier) == 20);
inline constexpr std::size_t kMadDataBytes = kMadBytes - sizeof(MadBytes);

/// A way through the network. RoCE has no LIDs; their fields hold 0xFFFF.
struct PathBytes {
  std::uint8_t local_lid[2];
  std::uint8_t remote_lid[2];
  std::uint8_t local_gid[16];
  std::uint8_t remote_gid[16];
  std::uint8_t flow_label_and_rate[4];  // flow label 20, reserved 6, packet rate 6
  std::uint8_t traffic_class;
  std::uint8_t hop_limit;
  std::uint8_t service_level;      // service level 4, subnet local 1, reserved 3
  std::uint8_t local_ack_timeout;  // timeout 5, reserved 3
};
static_assert(sizeof(PathBytes) == 44 && offsetof(PathBytes, local_gid) == 4);
static_assert(offsetof(PathBytes, flow_label_and_rate) == 36);
static_assert(offsetof(PathBytes, local_ack_timeout) == 43);

/// REQ: asks for a connection.
struct RequestBytes {
  std::uint8_t local_id[4];
  std::uint8_t reserved4[4];
  std::uint8_t service_id[8];
  std::uint8_t local_ca_guid[8];
  std::uint8_t reserved24[4];
  std::uint8_t local_queue_key[4];
  std::uint8_t local_pair[3];
  std::uint8_t responder_resources;
  std::uint8_t local_eec[3];
  std::uint8_t initiator_depth;
  std::uint8_t remote_eec[3];
  std::uint8_t remote_timeout;  // remote response timeout 5, service type 2, flow control 1
  std::uint8_t starting_psn[3];
  std::uint8_t local_timeout;  // local response timeout 5, retry count 3
  std::uint8_t partition[2];
  std::uint8_t mtu;          // path MTU 4, RDC exists 1, RNR retry count 3
  std::uint8_t max_retries;  // of connection messages 4, shared receive queue 1, extended type 3
  PathBytes primary;
  PathBytes alternate;
  std::uint8_t private_data[92];
};
static_assert(sizeof(RequestBytes) == kMadDataBytes);
static_assert(offsetof(RequestBytes, service_id) == 8 && offsetof(RequestBytes, local_pair) == 32);
static_assert(offsetof(RequestBytes, remote_timeout) == 43);
static_assert(offsetof(RequestBytes, starting_psn) == 44 && offsetof(RequestBytes, mtu) == 50);
static_assert(offsetof(RequestBytes, primary) == 52 && offsetof(RequestBytes, alternate) == 96);
static_assert(offsetof(RequestBytes, private_data) == 140);

/// Precedes a REQ's private data where IP addresses name the two sides.
///
///   0                  1              2             4                20                    36
///   +------------------+--------------+-------------+----------------+---------------------+
///   | major 4, minor 4 | IP version 4 | source port | source address | destination address |
///   +------------------+--------------+-------------+----------------+---------------------+
///
/// An IPv4 address is the last 4 bytes of 16.
struct IpServiceBytes {
  std::uint8_t version;
  std::uint8_t ip_version;  // IP version 4, reserved 4
  std::uint8_t source_port[2];
  std::uint8_t source[16];
  std::uint8_t destination[16];
};
static_assert(sizeof(IpServiceBytes) == 36 && offsetof(IpServiceBytes, source) == 4);

/// REP: accepts the connection.
struct ReplyBytes {
  std::uint8_t local_id[4];
  std::uint8_t remote_id[4];
  std::uint8_t local_queue_key[4];
  std::uint8_t local_pair[3];
  std::uint8_t reserved15;
  std::uint8_t local_eec[3];
  std::uint8_t reserved19;
  std::uint8_t starting_psn[3];
  std::uint8_t reserved23;
  std::uint8_t responder_resources;
  std::uint8_t initiator_depth;
  std::uint8_t ack_delay;  // target ack delay 5, failover accepted 2, flow control 1
  std::uint8_t rnr_retry;  // RNR retry count 3, shared receive queue 1, reserved 4
  std::uint8_t local_ca_guid[8];
  std::uint8_t private_data[196];
};
static_assert(sizeof(ReplyBytes) == kMadDataBytes && offsetof(ReplyBytes, local_pair) == 12);
static_assert(offsetof(ReplyBytes, starting_psn) == 20 && offsetof(ReplyBytes, ack_delay) == 26);
static_assert(offsetof(ReplyBytes, local_ca_guid) == 28);
static_assert(offsetof(ReplyBytes, private_data) == 36);

/// RTU, which is also the form of DREP.
struct ReadyBytes {
  std::uint8_t local_id[4];
  std::uint8_t remote_id[4];
  std::uint8_t private_data[224];
};
static_assert(sizeof(ReadyBytes) == kMadDataBytes);

/// DREQ: terminates the connection.
struct DisconnectBytes {
  std::uint8_t local_id[4];
  std::uint8_t remote_id[4];
  std::uint8_t remote_pair[3];
  std::uint8_t reserved11;
  std::uint8_t private_data[220];
};
static_assert(sizeof(DisconnectBytes) == kMadDataBytes);
static_assert(offsetof(DisconnectBytes, remote_pair) == 8);

/// REJ: rejects the connection.
struct RejectBytes {
  std::uint8_t local_id[4];
  std::uint8_t remote_id[4];
  std::uint8_t rejected;     // message rejected 2, reserved 6
  std::uint8_t info_length;  // bytes of information 7, reserved 1
  std::uint8_t reason[2];
  std::uint8_t information[72];
  std::uint8_t private_data[148];
};
static_assert(sizeof(RejectBytes) == kMadDataBytes && offsetof(RejectBytes, reason) == 10);
static_assert(offsetof(RejectBytes, information) == 12);
static_assert(offsetof(RejectBytes, private_data) == 84);

/// An extension: the private data of a REJ for want of resources. The client asks again, with this
/// cookie as the GUID of the REQ (which is 0 else). It is the only field that is free in each REQ:
/// the private data may be full.
struct CookieBytes {
  std::uint8_t magic[8];
  std::uint8_t cookie[8];  // not 0
};
static_assert(sizeof(CookieBytes) == 16 && sizeof(CookieBytes::cookie) == 8);
static_assert(sizeof(CookieBytes) <= sizeof(RejectBytes::private_data));
static_assert(sizeof(CookieBytes::cookie) == sizeof(RequestBytes::local_ca_guid));
inline constexpr std::uint64_t kCookieMagic = 0x4553504C'434F4F4B;  // "ESPLCOOK"

/// MRA: the answer to the peer's message is delayed.
struct ReceiptBytes {
  std::uint8_t local_id[4];
  std::uint8_t remote_id[4];
  std::uint8_t received;  // message received 2, reserved 6
  std::uint8_t timeout;   // service timeout 5, reserved 3
  std::uint8_t private_data[222];
};
static_assert(sizeof(ReceiptBytes) == kMadDataBytes && offsetof(ReceiptBytes, received) == 8);

}  // namespace espalier::wire::roce
