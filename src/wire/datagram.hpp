// SPDX-License-Identifier: Apache-2.0
// A read in one datagram of UDP [Fat-B+Tree §II, client-server form]: the client's request and the
// node's reply. docs/formats/datagram.md draws them.
//
// A session of datagrams belongs to a connection, which gives both sides its number and a key.
// Every datagram has a tag under that key, over all of it but the hint, which switches write, and
// the tag itself. The node answers a read only at the address that the session has proved: the
// client sends a hello, the node a challenge, and the client returns the challenge in a proof.
//
// Numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace espalier::wire {

inline constexpr std::uint32_t kDatagramMagic = 0x47445345;  // "ESDG"
inline constexpr std::uint8_t kDatagramVersion = 1;
/// The port where a node takes them by default.
inline constexpr std::uint16_t kDatagramPort = 4758;
/// What IPv4 and IPv6 carry over Ethernet without fragments.
inline constexpr std::size_t kDatagramBytesMax = 1452;

/// None that a client sends is one that a node sends: a tag is good one way.
enum class DatagramKind : std::uint8_t {
  invalid = 0,
  hello = 1,      // key: zeros, so that its answer is no longer
  proof = 2,      // key: the challenge
  get = 3,        // key: of a map's item
  challenge = 4,  // payload: the challenge
  proved = 5,     // nothing
  answer = 6,     // payload: the value
};

enum class DatagramStatus : std::uint8_t {
  invalid = 0,  // of what is no answer
  found = 1,
  absent = 2,
  by_ring = 3,  // it is to be asked for by rings: too long, not permitted, another node's, ...
};

inline constexpr std::size_t kDatagramTagBytes = 16;
inline constexpr std::size_t kChallengeBytes = 16;

///  0       4         5      6           8         16       24    28         32     40    56
///  +-------+---------+------+-----------+---------+--------+-----+----------+------+-----+-----
///  | magic | version | kind | key bytes | session | number | map | reserved | hint | tag | key
///  +-------+---------+------+-----------+---------+--------+-----+----------+------+-----+-----
struct DatagramRequest {
  std::uint32_t magic;
  std::uint8_t version;
  std::uint8_t kind;  // DatagramKind
  std::uint16_t key_bytes;
  std::uint64_t session;
  std::uint64_t number;  // greater than all before it in the session, or the same request again
  std::uint32_t map;     // 0 but for a get
  std::uint32_t reserved;
  std::uint64_t hint;  // wire::Ref of a node to begin at; 0: none. Not under the tag
  std::uint8_t tag[kDatagramTagBytes];
};
inline constexpr std::size_t kDatagramRequestBytes = 56;
static_assert(sizeof(DatagramRequest) == kDatagramRequestBytes);
static_assert(offsetof(DatagramRequest, session) == 8 && offsetof(DatagramRequest, map) == 24);
static_assert(offsetof(DatagramRequest, hint) == 32 && offsetof(DatagramRequest, tag) == 40);
static_assert(std::has_unique_object_representations_v<DatagramRequest>);

///  0       4         5      6        7          8         16       24
///  +-------+---------+------+--------+----------+---------+--------+--
///  | magic | version | kind | status | reserved | session | number |
///  +-------+---------+------+--------+----------+---------+--------+--
///  24             32             40    56
///  +--------------+--------------+-----+---------
///  | item version | read version | tag | payload
///  +--------------+--------------+-----+---------
struct DatagramReply {
  std::uint32_t magic;
  std::uint8_t version;
  std::uint8_t kind;    // DatagramKind
  std::uint8_t status;  // DatagramStatus
  std::uint8_t reserved;
  std::uint64_t session;
  std::uint64_t number;        // the request's
  std::uint64_t item_version;  // of the item that was found
  std::uint64_t read_version;  // as of which it was looked for
  std::uint8_t tag[kDatagramTagBytes];
};
inline constexpr std::size_t kDatagramReplyBytes = 56;
static_assert(sizeof(DatagramReply) == kDatagramReplyBytes);
static_assert(offsetof(DatagramReply, number) == 16 && offsetof(DatagramReply, tag) == 40);
static_assert(std::has_unique_object_representations_v<DatagramReply>);

inline constexpr std::size_t kDatagramValueBytesMax = kDatagramBytesMax - kDatagramReplyBytes;
inline constexpr std::size_t kDatagramKeyBytesMax = kDatagramBytesMax - kDatagramRequestBytes;
// An unproved address is sent no more bytes than came from there.
static_assert(kDatagramReplyBytes + kChallengeBytes <= kDatagramRequestBytes + kChallengeBytes);

inline constexpr std::size_t kDatagramNonceBytes = 32;

/// What a node offers for a session over its connection. The session's key is derived from what
/// both ends have proven to each other, the number and the nonce; without a proof, from these
/// alone.
struct DatagramOffer {
  std::uint64_t session;
  std::uint8_t nonce[kDatagramNonceBytes];
  std::uint8_t address[16];  // of the node's port: IPv6, or IPv4 as ::ffff:a.b.c.d
  std::uint16_t port;
  std::uint16_t reserved[3];
};
static_assert(sizeof(DatagramOffer) == 64 &&
              std::has_unique_object_representations_v<DatagramOffer>);

/// A request as it came: nothing of it is proven yet. `key` points into the datagram.
struct TakenRequest {
  DatagramRequest header;
  std::string_view key;
};
/// Nothing: these bytes are no request. Only lengths and constants are looked at.
[[nodiscard]] inline std::optional<TakenRequest> read_datagram_request(
    std::span<const std::byte> datagram) {
  if (datagram.size() < kDatagramRequestBytes || datagram.size() > kDatagramBytesMax) return {};
  TakenRequest taken;
  std::memcpy(&taken.header, datagram.data(), sizeof taken.header);
  const DatagramRequest& header = taken.header;
  if (header.magic != kDatagramMagic || header.version != kDatagramVersion || header.reserved != 0)
    return {};
  if (datagram.size() != kDatagramRequestBytes + header.key_bytes) return {};
  switch (static_cast<DatagramKind>(header.kind)) {
    case DatagramKind::hello:
    case DatagramKind::proof:
      if (header.key_bytes != kChallengeBytes || header.map != 0) return {};
      break;
    case DatagramKind::get:
      if (header.key_bytes == 0) return {};
      break;
    default: return {};
  }
  taken.key = {reinterpret_cast<const char*>(datagram.data()) + kDatagramRequestBytes,
               header.key_bytes};
  return taken;
}

/// The same of a reply.
struct TakenReply {
  DatagramReply header;
  std::string_view payload;
};
[[nodiscard]] inline std::optional<TakenReply> read_datagram_reply(
    std::span<const std::byte> datagram) {
  if (datagram.size() < kDatagramReplyBytes || datagram.size() > kDatagramBytesMax) return {};
  TakenReply taken;
  std::memcpy(&taken.header, datagram.data(), sizeof taken.header);
  const DatagramReply& header = taken.header;
  if (header.magic != kDatagramMagic || header.version != kDatagramVersion || header.reserved != 0)
    return {};
  const std::size_t bytes = datagram.size() - kDatagramReplyBytes;
  const auto status = static_cast<DatagramStatus>(header.status);
  switch (static_cast<DatagramKind>(header.kind)) {
    case DatagramKind::challenge:
      if (bytes != kChallengeBytes || status != DatagramStatus::invalid) return {};
      break;
    case DatagramKind::proved:
      if (bytes != 0 || status != DatagramStatus::invalid) return {};
      break;
    case DatagramKind::answer:
      if (status < DatagramStatus::found || status > DatagramStatus::by_ring) return {};
      if (status != DatagramStatus::found && bytes != 0) return {};
      break;
    default: return {};
  }
  taken.payload = {reinterpret_cast<const char*>(datagram.data()) + kDatagramReplyBytes, bytes};
  return taken;
}

}  // namespace espalier::wire
