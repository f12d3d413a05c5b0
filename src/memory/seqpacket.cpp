// SPDX-License-Identifier: Apache-2.0
#include "memory/seqpacket.hpp"

#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/system_error.hpp"
#include "base/unix_address.hpp"

namespace espalier::memory {
namespace {

// A message of one part, with room for descriptors beside it.
struct Message {
  Message(std::byte* packet, std::size_t bytes) : part{packet, bytes} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  iovec part;
  alignas(cmsghdr) char control[CMSG_SPACE(kPassedDescriptorsMax * sizeof(int))] = {};
  msghdr header{};
};

}  // namespace

Result<Descriptor> connect_packets(const std::string& path, std::uint32_t timeout_ms) {
  const auto address = base::UnixAddress::file(path);
  if (!address) return std::unexpected(address.error());
  Descriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!made) return base::refused_by_system();
  const timeval longest{timeout_ms / 1000, suseconds_t{timeout_ms % 1000} * 1000};
  for (const int wait : {SO_SNDTIMEO, SO_RCVTIMEO}) {
    if (::setsockopt(made.number(), SOL_SOCKET, wait, &longest, sizeof longest) != 0) {
      return base::refused_by_system();
    }
  }
  while (::connect(made.number(), address->get(), address->bytes()) != 0) {
    if (errno != EINTR) return base::refused_by_system();
  }
  return made;
}

Result<void> send_packet(int socket, std::span<const std::byte> packet,
                         std::span<const int> descriptors) {
  ESPALIER_ASSERT(descriptors.size() <= kPassedDescriptorsMax);
  Message message(const_cast<std::byte*>(packet.data()), packet.size());
  if (!descriptors.empty()) {
    message.header.msg_control = message.control;
    message.header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const beside = CMSG_FIRSTHDR(&message.header);
    beside->cmsg_level = SOL_SOCKET;
    beside->cmsg_type = SCM_RIGHTS;
    beside->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(beside), descriptors.data(), descriptors.size_bytes());
  }
  while (::sendmsg(socket, &message.header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return base::refused_by_system();
  }
  return {};
}

Result<std::size_t> receive_packet(int socket, std::span<std::byte> packet,
                                   std::span<Descriptor> descriptors) {
  Message message(packet.data(), packet.size());
  message.header.msg_control = message.control;
  message.header.msg_controllen = sizeof message.control;
  ssize_t got = -1;
  while ((got = ::recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno != EINTR) return base::refused_by_system();
  }
  const cmsghdr* const beside = CMSG_FIRSTHDR(&message.header);
  if (beside != nullptr && beside->cmsg_level == SOL_SOCKET && beside->cmsg_type == SCM_RIGHTS) {
    const std::size_t count = (beside->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(beside) + i * sizeof number, sizeof number);
      Descriptor taken(number);
      if (i < descriptors.size()) descriptors[i] = std::move(taken);
    }
  }
  return static_cast<std::size_t>(got);
}

}  // namespace espalier::memory
