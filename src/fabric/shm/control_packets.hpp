// SPDX-License-Identifier: Apache-2.0
// The packets of a connection's socket (wire/fabric_shm.hpp): sends them, and parses received ones,
// which are untrusted.
//
// Sending does not block. If the socket is full the error is `system` with EAGAIN.
//
// Thread: any; no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "espalier/error.hpp"
#include "fabric/region_table.hpp"
#include "fabric/shm/pair_socket.hpp"
#include "fabric/shm/piece_rings.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::shm {

/// Longer than any packet, so that oversized ones are detected.
inline constexpr std::size_t kPacketBytesMax = 256;
inline constexpr std::size_t kPacketDescriptorsMax = 2;

/// Errors: system.
Result<void> send_hello(int socket, std::span<const std::byte> data, const RegionTable& regions);
/// Errors: system.
Result<void> send_welcome(int socket, std::span<const std::byte> data, const PieceRings& channel,
                          std::uint32_t ring_slots, const RegionTable& regions);
void send_refusal(int socket);
/// Asks for the memory behind a key. Errors: system.
Result<void> send_ask(int socket, RegionKey key);
/// Answers that. Errors: system.
Result<void> send_answer(int socket, RegionKey key, Domain domain, RegionTable& regions);
/// Errors: system.
Result<void> send_wake(int socket);

/// A peer's hello: its data, and its good keys. Errors: corrupt, system.
struct Hello {
  std::vector<std::byte> data;
  memory::SharedMemory words;
};
Result<Hello> read_hello(std::span<const std::byte> packet, memory::Descriptor words);
/// Errors: corrupt, system.
Result<Welcomed> read_welcome(std::span<const std::byte> packet,
                              std::span<memory::Descriptor> descriptors);
/// The answer to the question for this key. Errors: corrupt.
Result<Mapped> read_answer(std::span<const std::byte> packet, memory::Descriptor descriptor,
                           RegionKey asked);

}  // namespace espalier::fabric::shm
