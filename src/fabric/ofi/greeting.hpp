// SPDX-License-Identifier: Apache-2.0
// The records that begin a connection: the sides' formats, and the private data of the two
// applications.
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

/// The peer's private data; nothing: this is no greeting, or one of another format.
std::optional<std::span<const std::byte>> read_greeting(const Record& record, std::size_t data_max);

}  // namespace espalier::fabric::ofi
