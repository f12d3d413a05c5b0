// SPDX-License-Identifier: Apache-2.0
// What a user whose process comes by the UNIX socket may do.
//
// Thread: any.
#pragma once

#include <cstdint>

#include "base/peer_user.hpp"
#include "offload/access.hpp"

namespace espalier::node {

/// Who may take the node's memory anyway, by a debugger, is an admin: its own user and root. Others
/// whom the socket's mode lets in may write; so may those whose user is not mapped, even if the
/// node's own is called the same.
[[nodiscard]] offload::Access access_of_user(std::uint32_t user, const base::KnownUsers& known);

}  // namespace espalier::node
