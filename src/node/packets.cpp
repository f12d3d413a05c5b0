// SPDX-License-Identifier: Apache-2.0
#include "node/packets.hpp"

#include <sys/socket.h>

#include <cstring>

namespace espalier::node {

bool send_welcome(int socket, wire::Welcome welcome, std::span<const int> descriptors) {
  welcome.magic = wire::kHelloMagic;
  welcome.protocol = wire::kProtocolVersion;
  iovec part{&welcome, sizeof welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(wire::kWelcomeDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof welcome;
}

void refuse(int socket, const Error& error) {
  wire::Welcome welcome{};
  welcome.code = static_cast<std::uint32_t>(error.code);
  welcome.detail = error.detail;
  send_welcome(socket, welcome, {});
}

void send_byte(int socket, wire::SocketByte byte) {
  send(socket, &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL);
}

std::optional<wire::Hello> receive_hello(int socket) {
  wire::Hello hello{};
  const ssize_t got = recv(socket, &hello, sizeof hello, MSG_DONTWAIT | MSG_TRUNC);
  if (got != sizeof hello || hello.magic != wire::kHelloMagic) return std::nullopt;
  return hello;
}

}  // namespace espalier::node
