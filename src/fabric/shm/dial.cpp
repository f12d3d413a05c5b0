// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/dial.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/system_error.hpp"
#include "base/trusted_server.hpp"
#include "base/unix_address.hpp"
#include "fabric/shm/control_packets.hpp"

namespace espalier::fabric::shm {

Result<std::shared_ptr<PairSocket>> dial(const std::string& path, std::span<const std::byte> data,
                                         Domain domain, const RegionTable& regions,
                                         std::optional<std::uint32_t> server_user) {
  const auto address = base::UnixAddress::file(path);
  if (!address) return std::unexpected(address.error());
  memory::Descriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return base::refused_by_system();
  made.close_in_children();
  while (::connect(made.number(), address->get(), address->bytes()) != 0) {
    if (errno == EINTR) continue;
    if (errno == ECONNREFUSED || errno == ENOENT) return fail(Code::connection_lost);
    return base::refused_by_system();
  }
  if (const auto good = base::check_server(made.number(), path, server_user); !good) {
    return std::unexpected(good.error());
  }
  if (const auto sent = send_hello(made.number(), data, regions); !sent) {
    if (sent.error().code == Code::system && sent.error().detail == EPIPE) {
      return fail(Code::connection_lost);
    }
    return std::unexpected(sent.error());
  }
  auto link = std::make_shared<PairSocket>(std::move(made), PairSocket::Phase::expecting);
  link->domain = domain;
  return link;
}

}  // namespace espalier::fabric::shm
