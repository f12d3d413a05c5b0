// SPDX-License-Identifier: Apache-2.0
// The user of the process at the other end of a UNIX socket, by the word of the system.
//
// Thread: any; no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "espalier/error.hpp"

namespace espalier::base {

struct PeerUser {
  std::int32_t process = 0;
  std::uint32_t user = 0;
};
/// As the system reports it (SO_PEERCRED): of a socket that connected, the listener's user; of one
/// that was accepted, the connecting process's. Errors: not_permitted (detail 0), if it does not.
[[nodiscard]] Result<PeerUser> peer_user(int socket);

/// The users that a process must know to classify others.
struct KnownUsers {
  std::uint32_t own = 0;
  /// What the system calls each user that this process's user namespace does not map; nothing: it
  /// maps all.
  std::optional<std::uint32_t> unmapped{};
};
[[nodiscard]] KnownUsers known_users();
/// Whether a user namespace with this /proc/self/uid_map maps every user.
[[nodiscard]] bool maps_all_users(std::string_view uid_map);

/// Whether this user is root, or the process's own, and not one of those that have one number
/// because they are not mapped.
[[nodiscard]] bool is_own_or_root(std::uint32_t user, const KnownUsers& known);

/// The user of this name or number on this machine; nothing: there is none. A number need not have
/// a name. Cost: reads the system's lists of users.
[[nodiscard]] std::optional<std::uint32_t> user_named(std::string_view name_or_number);

}  // namespace espalier::base
