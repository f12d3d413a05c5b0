// SPDX-License-Identifier: Apache-2.0
// Whether the process that listens at a UNIX socket is the one that a client means, so that another
// user's process cannot impersonate it.
//
// A client means the path that it was given. If only root, the client's own user and the server's
// user can change what that path leads to, one of them put the listener there. Everywhere else, as
// in /tmp, any user may have been first, so there the server must run as a user that the client
// trusts anyway.
//
// Thread: any; no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/peer_user.hpp"
#include "espalier/error.hpp"

namespace espalier::base {

/// The detail of not_permitted for a server that is not trusted.
inline constexpr std::uint32_t kServerNotTrusted = 7;

/// Trusts the server at the other end of a socket that was connected by this path, if it runs as
/// the process's own user, as root, or as `expected`; or if only root, the own user and the
/// server's may write a folder or replace a link on the way to it.
/// Errors: not_permitted (detail kServerNotTrusted; 0: the system does not report the listener's
/// user).
/// Cost: system calls for each folder on the path, and only of a server of another user.
Result<void> check_server(int socket, std::string_view path, std::optional<std::uint32_t> expected);

/// The same of a server that runs as `server`.
[[nodiscard]] bool is_trusted_server(std::uint32_t server, std::string_view path,
                                     std::optional<std::uint32_t> expected,
                                     const KnownUsers& known);

}  // namespace espalier::base
