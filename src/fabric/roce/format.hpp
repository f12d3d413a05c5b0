// SPDX-License-Identifier: Apache-2.0
// The bytes of RoCEv2: InfiniBand's transport headers in UDP, as every network card speaks them
// [IBTA Volume 1, chapter 9, and Annex A17].
//
//   +----------+---------+-----+-----+--------------+---------+-----+------+
//   | Ethernet | IP 4, 6 | UDP | BTH | more headers | payload | pad | ICRC |
//   +----------+---------+-----+-----+--------------+---------+-----+------+
//                              12    by opcode                0..3  4 bytes
//
// All numbers are big-endian, but for the ICRC, whose least significant byte comes first. Here are
// plain bytes and constants; fabric/roce/packet.hpp turns them into numbers. Which parts the ICRC
// covers, docs/formats/roce.md draws. Bytes of connection messages:
// fabric/roce/connection_format.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::wire::roce {

/// The port that RoCEv2 packets go to. The port they come from is theirs to choose: routers that
/// spread flows over paths look at it.
inline constexpr std::uint16_t kUdpPort = 4791;
/// The default partition, of which every port is a full member.
inline constexpr std::uint16_t kDefaultPartition = 0xFFFF;
inline constexpr std::uint8_t kTransportVersion = 0;
/// Packet sequence numbers and queue pair numbers have so many bits.
inline constexpr std::uint32_t kMask24 = 0x00FF'FFFF;
inline constexpr std::size_t kIcrcBytes = 4;

/// The first byte of a packet. Its upper three bits name the service: 0 is the reliable
/// connection, 3 the unreliable datagram, of which only what connection messages need is here.
enum class PacketOpcode : std::uint8_t {
  send_first = 0x00,
  send_middle = 0x01,
  send_last = 0x02,
  send_last_immediate = 0x03,
  send_only = 0x04,
  send_only_immediate = 0x05,
  write_first = 0x06,
  write_middle = 0x07,
  write_last = 0x08,
  write_last_immediate = 0x09,
  write_only = 0x0A,
  write_only_immediate = 0x0B,
  read_request = 0x0C,
  read_response_first = 0x0D,
  read_response_middle = 0x0E,
  read_response_last = 0x0F,
  read_response_only = 0x10,
  acknowledge = 0x11,
  atomic_acknowledge = 0x12,
  compare_swap = 0x13,
  fetch_add = 0x14,
  datagram_send_only = 0x64,
};

/// Base transport header: every packet begins with it.
///
///   0        1                  2           4                5         8           9     12
///   +--------+------------------+-----------+----------------+---------+-----------+-----+
///   | opcode | S M pad2 version4 | partition | F B reserved 6 | pair 24 | A resv. 7 | PSN |
///   +--------+------------------+-----------+----------------+---------+-----------+-----+
///
/// S solicited event, M migration state, F and B forward and backward congestion, A ask for an
/// acknowledgement; each the highest bit, in this order.
struct BthBytes {
  std::uint8_t opcode;
  std::uint8_t flags;
  std::uint8_t partition[2];
  std::uint8_t congestion;  // masked in the ICRC: routers may change it
  std::uint8_t destination[3];
  std::uint8_t acknowledge;
  std::uint8_t psn[3];
};
static_assert(sizeof(BthBytes) == 12 && alignof(BthBytes) == 1);
static_assert(offsetof(BthBytes, partition) == 2 && offsetof(BthBytes, congestion) == 4);
static_assert(offsetof(BthBytes, destination) == 5 && offsetof(BthBytes, acknowledge) == 8);
static_assert(offsetof(BthBytes, psn) == 9);

inline constexpr std::uint8_t kBthSolicited = 0x80;
inline constexpr std::uint8_t kBthMigrated = 0x40;
inline constexpr unsigned kBthPadShift = 4;
inline constexpr std::uint8_t kBthPadMask = 3;
inline constexpr std::uint8_t kBthVersionMask = 0x0F;
inline constexpr std::uint8_t kBthForwardCongestion = 0x80;
inline constexpr std::uint8_t kBthBackwardCongestion = 0x40;
inline constexpr std::uint8_t kBthAskAcknowledge = 0x80;

/// RDMA header, of READ requests and of the first or only packet of a WRITE.
///
///   0                 8     12       16
///   +-----------------+-----+--------+
///   | virtual address | key | length |
///   +-----------------+-----+--------+
struct RethBytes {
  std::uint8_t address[8];
  std::uint8_t key[4];
  std::uint8_t length[4];
};
static_assert(sizeof(RethBytes) == 16 && alignof(RethBytes) == 1);
static_assert(offsetof(RethBytes, key) == 8 && offsetof(RethBytes, length) == 12);

/// A READ request, from the BTH to the ICRC.
inline constexpr std::size_t kReadRequestBytes = sizeof(BthBytes) + sizeof(RethBytes) + kIcrcBytes;

/// Header of atomics.
///
///   0                 8     12            20        28
///   +-----------------+-----+-------------+---------+
///   | virtual address | key | swap or add | compare |
///   +-----------------+-----+-------------+---------+
struct AtomicEthBytes {
  std::uint8_t address[8];
  std::uint8_t key[4];
  std::uint8_t swap_or_add[8];
  std::uint8_t compare[8];
};
static_assert(sizeof(AtomicEthBytes) == 28 && alignof(AtomicEthBytes) == 1);
static_assert(offsetof(AtomicEthBytes, key) == 8 && offsetof(AtomicEthBytes, swap_or_add) == 12);
static_assert(offsetof(AtomicEthBytes, compare) == 20);

/// Acknowledgement header: acknowledgements, and READ responses but for the middle ones.
///
///   0          1                           4
///   +----------+---------------------------+
///   | syndrome | message sequence number   |
///   +----------+---------------------------+
///
///   syndrome   000c cccc   acknowledged, c: credits, 31: credits are not used
///              001t tttt   receiver not ready (RNR), retry after timer t
///              011n nnnn   not acknowledged, n: why
struct AethBytes {
  std::uint8_t syndrome;
  std::uint8_t msn[3];
};
static_assert(sizeof(AethBytes) == 4 && offsetof(AethBytes, msn) == 1);

inline constexpr std::uint8_t kSyndromeKindMask = 0x60;
inline constexpr std::uint8_t kSyndromeAck = 0x00;
inline constexpr std::uint8_t kSyndromeRnr = 0x20;
inline constexpr std::uint8_t kSyndromeNak = 0x60;
inline constexpr std::uint8_t kSyndromeValueMask = 0x1F;
inline constexpr std::uint8_t kCreditsUnlimited = 31;

/// Why something was not acknowledged.
enum class NakCode : std::uint8_t {
  sequence_error = 0,      // a PSN is missing; the NAK carries it
  invalid_request = 1,     // the order, length or alignment makes no sense
  remote_access = 2,       // no such key, out of its range, or not granted
  remote_operational = 3,  // the responder could not do it, for a reason of its own
};

/// The old value, in the answer to an atomic, behind the acknowledgement header.
struct AtomicAckEthBytes {
  std::uint8_t original[8];
};
static_assert(sizeof(AtomicAckEthBytes) == 8);

/// The number that a SEND or WRITE with immediate carries.
struct ImmDtBytes {
  std::uint8_t immediate[4];
};
static_assert(sizeof(ImmDtBytes) == 4);

/// Datagram header.
///
///   0           4          5             8
///   +-----------+----------+-------------+
///   | queue key | reserved | source pair |
///   +-----------+----------+-------------+
struct DethBytes {
  std::uint8_t queue_key[4];
  std::uint8_t reserved;
  std::uint8_t source[3];
};
static_assert(sizeof(DethBytes) == 8 && offsetof(DethBytes, source) == 5);

/// The longest run of headers: an atomic's.
inline constexpr std::size_t kHeadersBytesMax = sizeof(BthBytes) + sizeof(AtomicEthBytes);
/// The largest payload of one packet.
inline constexpr std::size_t kPayloadBytesMax = 4096;

}  // namespace espalier::wire::roce
