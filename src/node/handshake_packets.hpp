// SPDX-License-Identifier: Apache-2.0
// Packets on a client's socket. Nothing here waits, or fails where the other end is gone.
#pragma once

#include <span>
#include <variant>

#include "espalier/error.hpp"
#include "memory/seqpacket.hpp"
#include "wire/handshake.hpp"
#include "wire/link_proof.hpp"

namespace espalier::node {

/// Sends the node's answer to a hello, with the descriptors that belong to it. Magic and protocol
/// are filled in. Returns false if it could not be sent.
bool send_welcome(int socket, wire::Welcome welcome, std::span<const int> descriptors);
/// Says why there will be no connection.
void refuse(int socket, const Error& error);
void send_byte(int socket, wire::SocketByte byte);

/// What a client may say before it has a connection. A proof is one by its length alone:
/// offload::read_proof() has its bytes checked.
using ClientPacket = std::variant<std::monostate, wire::Hello, wire::ProofAsk, wire::LinkProof>;
/// Takes a packet off the socket. Returns std::monostate if what came is none of them, or nothing
/// came.
ClientPacket receive_client_packet(int socket);
/// Sends a packet of the node's to a client. Returns false if it could not be sent.
template <class T>
bool send_to_client(int socket, const T& packet) {
  return memory::send_packet(socket, std::as_bytes(std::span(&packet, 1))).has_value();
}

}  // namespace espalier::node
