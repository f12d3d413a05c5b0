// SPDX-License-Identifier: Apache-2.0
#include "node/handshake_packets.hpp"

#include <sys/socket.h>

#include <array>

#include "base/atomic_bytes.hpp"

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

ClientPacket receive_client_packet(int socket) {
  std::array<std::byte, sizeof(wire::LinkProof)> bytes{};
  const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_TRUNC);
  if (got == sizeof(wire::Hello)) {
    const auto hello = base::load_plain<wire::Hello>(bytes.data());
    if (hello.magic == wire::kHelloMagic) return hello;
  } else if (got == sizeof(wire::ProofAsk)) {
    const auto ask = base::load_plain<wire::ProofAsk>(bytes.data());
    const bool asks = ask.step == static_cast<std::uint32_t>(wire::ProofStep::ask);
    if (ask.magic == wire::kProofMagic && asks && ask.reserved == 0) return ask;
  } else if (got == sizeof(wire::LinkProof)) {
    return base::load_plain<wire::LinkProof>(bytes.data());
  }
  return std::monostate();
}

}  // namespace espalier::node
