// SPDX-License-Identifier: Apache-2.0
// Packets on a client's socket. Nothing here waits, or fails where the other end is gone.
#pragma once

#include <optional>
#include <span>

#include "espalier/error.hpp"
#include "wire/handshake.hpp"

namespace espalier::node {

/// Sends the node's answer to a hello, with the descriptors that belong to it. Magic and protocol
/// are filled in. Returns false if it could not be sent.
bool send_welcome(int socket, wire::Welcome welcome, std::span<const int> descriptors);
/// Says why there will be no connection.
void refuse(int socket, const Error& error);
void send_byte(int socket, wire::SocketByte byte);
/// Takes a hello off the socket. Returns nothing if what came is none, or nothing came.
std::optional<wire::Hello> receive_hello(int socket);

}  // namespace espalier::node
