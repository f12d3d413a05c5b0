// SPDX-License-Identifier: Apache-2.0
// The shim: carries the position of the walk of a READ, or of a get in one datagram, from one
// switch to the next. It stands between the UDP header and these, and the datagram goes to a port
// of its own.
//
//   0              1           2        4            8        12     14         16
//   +--------------+-----------+--------+------------+--------+------+----------+--------------
//   | version kind | hops left | server | generation | cursor | port | checksum | BTH, or get
//   +--------------+-----------+--------+------------+--------+------+----------+--------------
//
// version 4 bits, kind 4: of a READ by key, or a get. Generation: of the tables that the cursor is
// of; one of others is void. Cursor: a node of the first set that the next switch has for the key.
// Hops left: which switch that is, by how many have parts of these tables behind the sender. Port:
// to which the datagram goes behind the last switch. Checksum: as IP has it, over the 16 bytes.
// Numbers are big-endian. docs/formats/index_shim.md.
//
// The checksum makes the words of a shim add up to zero in UDP's arithmetic, and its port is as
// much below the one that the datagram goes to as both lengths grow. So UDP's checksum is valid
// with a shim and without, and no switch changes it. The ICRC stays the sender's.
//
// Thread: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/frame_parts.hpp"
#include "wire/datagram.hpp"

namespace espalier::dataplane {

struct ShimBytes {
  std::uint8_t version_kind;
  std::uint8_t hops;
  std::uint8_t server[2];
  std::uint8_t generation[4];
  std::uint8_t cursor[4];
  std::uint8_t port[2];
  std::uint8_t checksum[2];
};
inline constexpr std::size_t kShimBytes = sizeof(ShimBytes);
static_assert(kShimBytes == 16 && alignof(ShimBytes) == 1);
static_assert(offsetof(ShimBytes, hops) == 1 && offsetof(ShimBytes, server) == 2);
static_assert(offsetof(ShimBytes, generation) == 4 && offsetof(ShimBytes, cursor) == 8);
static_assert(offsetof(ShimBytes, port) == 12 && offsetof(ShimBytes, checksum) == 14);

inline constexpr std::uint8_t kShimVersion = 1;
/// Before what it stands.
enum class ShimKind : std::uint8_t { read = 1, get = 2 };
[[nodiscard]] constexpr std::uint16_t port_of(ShimKind kind) {
  return kind == ShimKind::read ? wire::roce::kUdpPort : wire::kDatagramPort;
}
/// Where datagrams with a shim go: UDP counts its length twice (in the pseudo-header too).
[[nodiscard]] constexpr std::uint16_t shim_port_of(ShimKind kind) {
  return static_cast<std::uint16_t>(port_of(kind) - 2 * kShimBytes);
}
inline constexpr std::uint16_t kShimPort = shim_port_of(ShimKind::read);
inline constexpr std::uint16_t kGetShimPort = shim_port_of(ShimKind::get);
static_assert(kShimPort == 4759 && kGetShimPort == 4726);

/// What it says, but for what is the same in all.
struct Shim {
  std::uint32_t generation = 0;
  std::uint32_t cursor = 0;
  std::uint16_t server = 0;  // which node of a way that has several
  std::uint8_t hops = 0;     // switches behind the sender that have parts of these tables
  ShimKind kind = ShimKind::read;
  friend bool operator==(const Shim&, const Shim&) = default;
};

/// Nothing: it is none, or one that was damaged. Requires: kShimBytes.
[[nodiscard]] std::optional<Shim> read_shim(const std::byte* from, ShimKind kind);
void write_shim(std::byte* to, const Shim& shim);

/// Whether the frame is for a switch, be there a whole shim or not.
inline bool is_for_switch(const Datagram& datagram) {
  if (datagram.udp == nullptr) return false;
  const std::uint16_t port = load16(datagram.udp + 2);
  return port == kShimPort || port == kGetShimPort;
}
/// The shim before a READ request or a get; nothing: there is none that is whole.
[[nodiscard]] std::optional<Shim> find_shim(const Datagram& datagram);

/// What the shim stands before, with UDP's header where it would be. Requires: find_shim().
[[nodiscard]] inline Datagram behind_shim(const Datagram& carried) {
  return {carried.ip, carried.udp + kShimBytes, carried.bytes - kShimBytes};
}

/// Inserts a shim before the READ or get, whose bytes move back, and updates lengths, port and IP
/// checksum. Requires: one that goes to port_of(shim.kind), of lengths that agree; kShimBytes
/// behind the frame may be written.
void add_shim(std::span<std::byte> frame, const Datagram& before, const Shim& shim);
/// Takes it out: the frame, by kShimBytes shorter, is what it was. Requires: find_shim().
void remove_shim(std::span<std::byte> frame, const Datagram& carried);

}  // namespace espalier::dataplane
