// SPDX-License-Identifier: Apache-2.0
// Packets on a client's socket. Nothing here blocks, or fails if the peer has gone.
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
/// Refuses the connection, with the reason.
void refuse(int socket, const Error& error);
void send_byte(int socket, wire::SocketByte byte);

/// A client's packets before it has a connection. A proof is recognised by its length alone:
/// offload::read_proof() checks its bytes.
using ClientPacket = std::variant<std::monostate, wire::Hello, wire::ProofAsk, wire::LinkProof>;
/// Receives a packet. Returns std::monostate if there is none, or it is none of these.
ClientPacket receive_client_packet(int socket);
/// Sends a packet of the node to a client. Returns false if it could not be sent.
template <class T>
bool send_to_client(int socket, const T& packet) {
  return memory::send_packet(socket, std::as_bytes(std::span(&packet, 1))).has_value();
}

}  // namespace espalier::node
