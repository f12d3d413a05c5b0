// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/control.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/assert.hpp"
#include "base/system_error.hpp"
#include "fabric/roce/udp_address.hpp"

namespace espalier::fabric::ofi {
namespace {

constexpr int kBacklog = 128;
// When a peer's machine is asked whether it is there, how often, and how many times.
constexpr int kIdleSeconds = 10;
constexpr int kProbeSeconds = 5;
constexpr int kProbes = 4;

memory::Descriptor open_socket(const roce::PortAddress& towards, int kind) {
  return memory::Descriptor(
      socket(towards.ip.is_v6 ? AF_INET6 : AF_INET, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool is_for_later(int number) {
  return number == EAGAIN || number == EINTR || number == ENOTCONN || number == EINPROGRESS;
}

}  // namespace

Control::Control(memory::Descriptor socket) : socket_(std::move(socket)) {
  // Nothing goes through it, so a machine that vanishes would not show.
  const auto set = [this](int level, int option, int value) {
    setsockopt(socket_.number(), level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

Result<Control> Control::dial(const roce::PortAddress& where) {
  memory::Descriptor made = open_socket(where, SOCK_STREAM);
  if (!made) return base::refused_by_system();
  const roce::SocketAddress to(where);
  const bool failed = connect(made.number(), to.get(), to.bytes) != 0;
  if (failed && errno != EINPROGRESS && errno != ECONNREFUSED) return base::refused_by_system();
  Control control(std::move(made));
  control.over_ = failed && errno == ECONNREFUSED;
  return control;
}

Result<memory::Descriptor> Control::listen(const roce::PortAddress& where) {
  memory::Descriptor made = open_socket(where, SOCK_STREAM);
  if (!made) return base::refused_by_system();
  const int yes = 1;
  setsockopt(made.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const roce::SocketAddress at(where);
  if (bind(made.number(), at.get(), at.bytes) != 0 || ::listen(made.number(), kBacklog) != 0) {
    if (errno == EADDRINUSE) return fail(Code::already_exists);
    return base::refused_by_system();
  }
  return made;
}

// A socket that is connected and never used tells the way that packets would take.
Result<roce::IpAddress> Control::own_address_towards(const roce::PortAddress& where) {
  const memory::Descriptor made = open_socket(where, SOCK_DGRAM);
  if (!made) return base::refused_by_system();
  const roce::SocketAddress to(where);
  if (connect(made.number(), to.get(), to.bytes) != 0) return base::refused_by_system();
  return address_of(made).ip;
}

roce::PortAddress Control::address_of(const memory::Descriptor& socket) {
  roce::SocketAddress own;
  ESPALIER_ASSERT(getsockname(socket.number(), own.get(), &own.bytes) == 0);
  return roce::to_port_address(own.storage);
}

void Control::turn() {
  if (is_over()) return;
  say();
  listen_on();
}

void Control::say() {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&own_);
  while (said_ != sizeof own_) {
    const auto sent = send(number(), bytes + said_, sizeof own_ - said_, MSG_NOSIGNAL);
    if (sent < 0) {
      over_ = over_ || !is_for_later(errno);
      return;
    }
    said_ += static_cast<std::size_t>(sent);
  }
}

void Control::listen_on() {
  auto* const bytes = reinterpret_cast<std::byte*>(&peer_);
  while (!over_) {
    std::byte more;
    const bool whole = got_ == sizeof peer_;
    const auto came =
        whole ? recv(number(), &more, 1, 0) : recv(number(), bytes + got_, sizeof peer_ - got_, 0);
    if (came < 0) {
      over_ = !is_for_later(errno);
      return;
    }
    over_ = came == 0 || whole;
    got_ += whole ? 0 : static_cast<std::size_t>(came);
  }
}

std::optional<wire::ofi::Introduction> Control::heard() const {
  if (got_ != sizeof peer_) return {};
  return peer_;
}

}  // namespace espalier::fabric::ofi
