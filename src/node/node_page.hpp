// SPDX-License-Identifier: Apache-2.0
// The page that a node shares with its clients: its identity, and which workers sleep.
#pragma once

#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::node {

/// Creates one, for a node with a new unique number. `asymmetric`: as
/// offload::Services::asymmetric.
/// Errors: system.
[[nodiscard]] Result<memory::SharedMemory> make_node_page(bool asymmetric);
/// The node's number.
[[nodiscard]] std::uint64_t node_id_of(const memory::SharedMemory& page);

}  // namespace espalier::node
