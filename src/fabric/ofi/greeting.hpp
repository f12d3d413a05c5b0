// SPDX-License-Identifier: Apache-2.0
// The records with which a connection begins: who speaks which format, and what the two users have
// to say to each other.
//
// Thread: any; no state.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "fabric/ofi/frame_reader.hpp"
#include "fabric/ofi/send_buffer.hpp"

namespace espalier::fabric::ofi {

/// Adds a `hello` or a `welcome`. Requires: the send buffer is new; as much data as connections
/// carry.
void write_greeting(SendBuffer& out, wire::ofi::RecordKind kind, std::span<const std::byte> data);

/// What the peer's user said; nothing: this is no greeting, or one of another format.
std::optional<std::span<const std::byte>> read_greeting(const Record& record, std::size_t data_max);

}  // namespace espalier::fabric::ofi
