// SPDX-License-Identifier: Apache-2.0
// The rights of a user whose process connects to the UNIX socket, and which of the socket's
// permission bits apply to it.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <string>

#include "base/peer_user.hpp"
#include "engine/access.hpp"

namespace espalier::node {

/// Which permission bits of a socket's file admit a user: `any` is root, who needs none.
enum class SocketClass : std::uint8_t { any, owner, group, others };
/// The class of the process at the other end of `socket`, which connected through the file at
/// `path`. If the file is gone, or the system does not report the process's groups, it is one of
/// the others, or the file's owner.
[[nodiscard]] SocketClass socket_class_of(int socket, std::uint32_t user, const std::string& path);
/// Whether a socket of these permissions admits it.
[[nodiscard]] bool is_let_in(SocketClass of, std::uint32_t mode);

/// A user that could read the node's memory anyway, with a debugger, is an admin: the node's own
/// and root. Others that the socket's mode admits may write; so may users that are not mapped, even
/// if the node's own has the same number.
[[nodiscard]] offload::Access access_of_user(std::uint32_t user, const base::KnownUsers& known);

}  // namespace espalier::node
