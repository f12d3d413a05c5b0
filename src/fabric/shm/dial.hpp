// SPDX-License-Identifier: Apache-2.0
// Connects to a listener, without blocking.
//
// Thread: any; no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "espalier/error.hpp"
#include "fabric/region_table.hpp"
#include "fabric/shm/pair_socket.hpp"

namespace espalier::fabric::shm {

/// Connects to the socket at this path and sends a hello. Errors: invalid_argument (no path of a
/// socket), connection_lost (no process listens there), not_permitted (base::check_server), system
/// (EAGAIN: the listener's backlog is full, try again).
Result<std::shared_ptr<PairSocket>> dial(const std::string& path, std::span<const std::byte> data,
                                         Domain domain, const RegionTable& regions,
                                         std::optional<std::uint32_t> server_user);

}  // namespace espalier::fabric::shm
