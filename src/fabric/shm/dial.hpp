// SPDX-License-Identifier: Apache-2.0
// Connecting to who listens, without waiting.
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

/// Connects to the socket at this path and says hello. Errors: invalid_argument (no path of a
/// socket), connection_lost (nobody listens there), not_permitted (base::check_server), system
/// (EAGAIN: so many wait to be accepted that one must try again).
Result<std::shared_ptr<PairSocket>> dial(const std::string& path, std::span<const std::byte> data,
                                         Domain domain, const RegionTable& regions,
                                         std::optional<std::uint32_t> server_user);

}  // namespace espalier::fabric::shm
