// SPDX-License-Identifier: Apache-2.0
// The page that a node shows its clients: who it is, and which of its workers sleep.
#pragma once

#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::node {

/// Makes one, of a node with a number that nobody had before. `asymmetric`: as
/// offload::Services::asymmetric. Errors: system.
[[nodiscard]] Result<memory::SharedMemory> make_node_page(bool asymmetric);
/// The number of its node.
[[nodiscard]] std::uint64_t node_id_of(const memory::SharedMemory& page);

}  // namespace espalier::node
