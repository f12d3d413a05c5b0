// SPDX-License-Identifier: Apache-2.0
// Packets on UNIX sockets, and the descriptors that travel with them: how one process hands memory
// to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::memory {

/// So many descriptors travel with one packet.
inline constexpr std::size_t kPassedDescriptorsMax = 8;

/// Connects to who listens for packets at that path, and waits until there is room among those who
/// wait to be accepted. Neither that nor receive_packet() takes longer than `timeout_ms`; 0: no
/// limit. Errors: invalid_argument (no path of a socket), system (EAGAIN: there was no room in
/// time).
Result<Descriptor> connect_packets(const std::string& path, std::uint32_t timeout_ms = 0);

/// Sends all of a packet, with copies of the descriptors, and does not wait for room. Requires: not
/// more than kPassedDescriptorsMax descriptors. Errors: system.
Result<void> send_packet(int socket, std::span<const std::byte> packet,
                         std::span<const int> descriptors = {});

/// Waits for the next packet. The descriptors that came with it go into `descriptors`, in order;
/// those for which there is no place are closed. Returns the packet's length, 0 for the end; of a
/// packet that is longer than `packet`, the beginning. Errors: system (EAGAIN: none in time).
Result<std::size_t> receive_packet(int socket, std::span<std::byte> packet,
                                   std::span<Descriptor> descriptors);

}  // namespace espalier::memory
