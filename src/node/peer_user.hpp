// SPDX-License-Identifier: Apache-2.0
// Whose process is at the other end of a UNIX socket, and what that user may do.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "espalier/error.hpp"
#include "offload/access.hpp"

namespace espalier::node {

struct PeerUser {
  std::int32_t process = 0;
  std::uint32_t user = 0;
};
/// As the system says it (SO_PEERCRED). Errors: not_permitted (detail 0), where it does not say.
[[nodiscard]] Result<PeerUser> peer_user(int socket);

/// The users that a node must know to tell who is who.
struct KnownUsers {
  std::uint32_t own = 0;
  /// What the system calls each user that this process's user namespace does not map; nothing: it
  /// maps all.
  std::optional<std::uint32_t> unmapped{};
};
[[nodiscard]] KnownUsers known_users();
/// Whether a user namespace with this /proc/self/uid_map maps every user.
[[nodiscard]] bool maps_all_users(std::string_view uid_map);

/// Who may take the node's memory anyway, by a debugger, is an admin: its own user and root. Others
/// whom the socket's mode lets in may write; so may those whose user is not mapped, even if the
/// node's own is called the same.
[[nodiscard]] offload::Access access_of_user(std::uint32_t user, const KnownUsers& known);

}  // namespace espalier::node
