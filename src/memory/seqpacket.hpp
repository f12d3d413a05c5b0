// SPDX-License-Identifier: Apache-2.0
// SOCK_SEQPACKET sockets and descriptor passing (SCM_RIGHTS): how one process hands memory to
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::memory {

/// Most descriptors in one packet.
inline constexpr std::size_t kPassedDescriptorsMax = 8;

/// Connects to the listener at that path, and waits until its accept queue has room. Neither that
/// nor receive_packet() takes longer than `timeout_ms`; 0: no limit. Errors: invalid_argument (not
/// a valid socket path), system (EAGAIN: timed out).
Result<Descriptor> connect_packets(const std::string& path, std::uint32_t timeout_ms = 0);

/// Sends a whole packet, with copies of the descriptors, without waiting for room. Requires: at
/// most kPassedDescriptorsMax descriptors. Errors: system.
Result<void> send_packet(int socket, std::span<const std::byte> packet,
                         std::span<const int> descriptors = {});

/// Waits for the next packet. Its descriptors go into `descriptors`, in order; surplus ones are
/// closed. Returns the packet's length, 0 at the end of the stream; a packet longer than `packet`
/// is truncated. Errors: system (EAGAIN: timed out).
Result<std::size_t> receive_packet(int socket, std::span<std::byte> packet,
                                   std::span<Descriptor> descriptors);

}  // namespace espalier::memory
