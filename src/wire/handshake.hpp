// SPDX-License-Identifier: Apache-2.0
// The handshake of client and node over the UNIX socket of a connection: one packet each, then
// single bytes. Closing the socket closes the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::wire {

inline constexpr std::uint64_t kHelloMagic = 0x4F4C4C484C505345;  // "ESPLHLLO", low byte first
inline constexpr std::uint32_t kProtocolVersion = 1;

/// The client's first packet: the ring sizes that it asks for.
struct Hello {
  std::uint64_t magic;
  std::uint32_t protocol;
  std::uint32_t request_slots;
  std::uint32_t response_slots;
  std::uint32_t response_rings;
};
static_assert(sizeof(Hello) == 24 && std::has_unique_object_representations_v<Hello>);

/// The node's answer. With code 0 three descriptors come with it, in this order: the connection's
/// memory, the page of doorbells (both to read and write), the node's page (to read).
struct Welcome {
  std::uint64_t magic;
  std::uint32_t protocol;
  std::uint32_t code;  // 0, or a Code: then the rest is 0 but for `detail`
  std::uint32_t detail;
  std::uint32_t request_slots;  // what it got
  std::uint32_t response_slots;
  std::uint32_t response_rings;
  std::uint32_t doorbell;  // which word of the page of doorbells
  std::uint32_t worker;    // which line of the node's page
  std::uint64_t node_id;
};
static_assert(sizeof(Welcome) == 48 && std::has_unique_object_representations_v<Welcome>);
inline constexpr std::uint32_t kWelcomeDescriptors = 3;

/// The single bytes.
enum class SocketByte : std::uint8_t {
  invalid = 0,
  wake = 1,      // to the node: there are requests, and you sleep
  stopping = 2,  // to the client: the node stops; what has no answer by now gets none
  broken = 3,    // to the client: you broke the protocol
};

}  // namespace espalier::wire
