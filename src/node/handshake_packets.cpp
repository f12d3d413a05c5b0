// SPDX-License-Identifier: Apache-2.0
#include "node/handshake_packets.hpp"

#include <sys/socket.h>

#include "memory/seqpacket.hpp"

namespace espalier::node {

bool send_welcome(int socket, wire::Welcome welcome, std::span<const int> descriptors) {
  welcome.magic = wire::kHelloMagic;
  welcome.protocol = wire::kProtocolVersion;
  const auto packet = std::as_bytes(std::span(&welcome, 1));
  return memory::send_packet(socket, packet, descriptors).has_value();
}

void refuse(int socket, const Error& error) {
  wire::Welcome welcome{};
  welcome.code = static_cast<std::uint32_t>(error.code);
  welcome.detail = error.detail;
  send_welcome(socket, welcome, {});
}

void send_byte(int socket, wire::SocketByte byte) {
  ::send(socket, &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL);
}

std::optional<wire::Hello> receive_hello(int socket) {
  wire::Hello hello{};
  const ssize_t got = ::recv(socket, &hello, sizeof hello, MSG_DONTWAIT | MSG_TRUNC);
  if (got != sizeof hello || hello.magic != wire::kHelloMagic) return std::nullopt;
  return hello;
}

}  // namespace espalier::node
