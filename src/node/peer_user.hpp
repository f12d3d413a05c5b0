// SPDX-License-Identifier: Apache-2.0
// What a user whose process comes by the UNIX socket may do, and by which of the socket's
// permissions it comes.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <string>

#include "base/peer_user.hpp"
#include "engine/access.hpp"

namespace espalier::node {

/// By which of the permissions of a socket's file somebody is let in: `any` is root, whom none
/// keeps out.
enum class SocketClass : std::uint8_t { any, owner, group, others };
/// Of the process at the other end of `socket`, which came by the file at `path`: where that is not
/// there any more, or the system does not say its groups, it is one of the others, or the user
/// that is the file's owner.
[[nodiscard]] SocketClass socket_class_of(int socket, std::uint32_t user, const std::string& path);
/// Whether a socket of these permissions lets it in.
[[nodiscard]] bool is_let_in(SocketClass of, std::uint32_t mode);

/// Who may take the node's memory anyway, by a debugger, is an admin: its own user and root. Others
/// whom the socket's mode lets in may write; so may those whose user is not mapped, even if the
/// node's own is called the same.
[[nodiscard]] offload::Access access_of_user(std::uint32_t user, const base::KnownUsers& known);

}  // namespace espalier::node
