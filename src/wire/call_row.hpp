// SPDX-License-Identifier: Apache-2.0
// The static description of a call: one row for each, which the node, its clients, devices, tests
// and documents share. docs/design/kinds.md says why.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/message.hpp"

namespace espalier::wire {

/// What a client must be allowed to do to make a call.
enum class Right : std::uint8_t {
  none = 0,  ///< any connected client
  read = 1,
  write = 2,
  admin = 3,  ///< what concerns all clients: making and dropping
  /// Using regions, which other nodes write. Of a number above those that the details of
  /// not_permitted have for other things.
  peer = 8,
  replica = 9,  ///< calls between members of a chain, which all have the same data
};
/// Whether this is the number of a right. Any other names no role.
[[nodiscard]] constexpr bool is_right(std::uint8_t number) {
  return number <= static_cast<std::uint8_t>(Right::admin) ||
         number == static_cast<std::uint8_t>(Right::peer) ||
         number == static_cast<std::uint8_t>(Right::replica);
}

/// The rights of the role of this name, one bit for each. An administrator may make and drop
/// regions, but only peers use them; members of a chain may do nothing else.
[[nodiscard]] constexpr std::uint32_t rights_of(Right role) {
  const auto bit = [](Right right) { return 1u << static_cast<unsigned>(right); };
  const std::uint32_t reads = bit(Right::none) | bit(Right::read);
  switch (role) {
    case Right::none: break;
    case Right::read: return reads;
    case Right::write: return reads | bit(Right::write);
    case Right::admin: return reads | bit(Right::write) | bit(Right::admin);
    case Right::peer: return reads | bit(Right::write) | bit(Right::peer);
    case Right::replica: return bit(Right::none) | bit(Right::replica);
  }
  return bit(Right::none);
}
/// Every right.
inline constexpr std::uint32_t kAllRights =
    rights_of(Right::admin) | rights_of(Right::peer) | rights_of(Right::replica);
[[nodiscard]] constexpr bool has_right(std::uint32_t rights, Right needed) {
  return (rights >> static_cast<unsigned>(needed) & 1) != 0;
}

/// Which keys a request names; a node that has a shard of a map checks that it has them.
enum class Keys : std::uint8_t {
  none = 0,   ///< none, or its handler asks
  one = 1,    ///< its key
  range = 2,  ///< all from its key up to what ends its payload
};

/// How a request names its object; a node checks that the client may use it.
enum class Names : std::uint8_t {
  nothing = 0,  ///< it concerns none, or only what the client has been given before
  by_id = 1,    ///< its header has the object's number
  by_name = 2,  ///< its key is the object's name
  all = 3,      ///< it concerns the whole store
};

/// What a device does with a request (docs/design/device.md).
enum class AtDevice : std::uint8_t {
  refused = 0,  ///< its client is to ask the host
  here = 1,     ///< what a node does
  walked = 2,   ///< the same over READs; what these cannot do, the host does
  relayed = 3,  ///< its host does it
  by_kind = 4,  ///< a handler for devices
};

/// The lengths that a request must have before its handler sees it.
struct Limits {
  bool map = false;  // names a map that is there
  std::uint32_t key_bytes_min = 0;
  std::uint32_t key_bytes_max = 0;  // of calls on maps, the map itself says
  std::uint32_t payload_bytes_min = 0;
  std::uint32_t payload_bytes_max = 0;
  bool at_snapshot = false;  // may read at a snapshot, which then begins its payload
  Keys keys = Keys::none;    // of its map
};

struct CallRow {
  OffloadId id = OffloadId::invalid;
  std::string_view name;
  std::string_view format{};  ///< of the request, beyond its header
  std::string_view summary;   ///< what it does and answers
  /// Of one that names an object never `none`, which would let roles for other names have it.
  Right right = Right::admin;
  Limits limits{};
  /// Of calls on maps `nothing` means by_id.
  Names object = Names::nothing;
  AtDevice at_device = AtDevice::refused;
  /// It may change an object, or make or drop one.
  bool changes = false;
  /// Its answer's version is the number of the object that it names.
  bool opens = false;
  /// Its answer reveals which objects there are, though it names none.
  bool tells_of_objects = false;
  /// Of calls that take an administrator: it is repeated in the course of what another call has
  /// begun, so the audit log records only its failures.
  bool routine = false;
  /// Where in its payload the name of a second object begins, which ends it, and which the client
  /// must be permitted as well; 0: it names no second one.
  std::uint32_t second_name = 0;
  /// Its key is a secret: the message's copy is overwritten whatever becomes of the request.
  bool secret_key = false;
  /// What its fields say of the format (wire/call_codec.hpp); null: `format` does.
  std::string (*describe)() = nullptr;

  [[nodiscard]] std::string request_format() const {
    return describe != nullptr ? describe() : std::string(format);
  }
};

/// The name of the second object in the payload of a request; empty: there is none.
[[nodiscard]] constexpr std::string_view second_name_in(const CallRow& row,
                                                        std::string_view payload) {
  const bool names = row.second_name != 0 && payload.size() > row.second_name;
  return names ? payload.substr(row.second_name) : std::string_view();
}

}  // namespace espalier::wire
