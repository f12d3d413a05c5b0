// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/udp_wire.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <ctime>

#include "base/clock.hpp"
#include "base/system_error.hpp"
#include "fabric/roce/udp_address.hpp"

namespace espalier::client {
namespace {

// A node that polls answers within a few polls: a sleep costs more than that.
constexpr int kLooks = 32;
constexpr std::uint64_t kSecondNs = 1'000'000'000;

}  // namespace

// Connected, so that the kernel delivers only datagrams from that address, and reports that no
// process listens.
Result<std::unique_ptr<UdpWire>> UdpWire::open(const fabric::roce::PortAddress& node) {
  const int family = node.ip.is_v6 ? AF_INET6 : AF_INET;
  memory::Descriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return base::refused_by_system();
  const fabric::roce::SocketAddress name(node);
  if (::connect(socket.number(), name.get(), name.bytes) != 0) return base::refused_by_system();
  return std::unique_ptr<UdpWire>(new UdpWire(std::move(socket)));
}

void UdpWire::send(std::span<const std::byte> datagram) {
  static_cast<void>(::send(socket_.number(), datagram.data(), datagram.size(), MSG_NOSIGNAL));
}

std::optional<std::size_t> UdpWire::receive(std::span<std::byte> into) {
  const ssize_t got = ::recv(socket_.number(), into.data(), into.size(), 0);
  if (got < 0) return std::nullopt;
  return static_cast<std::size_t>(got);
}

void UdpWire::wait(std::uint64_t until_ns) {
  pollfd watched{socket_.number(), POLLIN, 0};
  for (int i = 0; i < kLooks; ++i) {
    if (::poll(&watched, 1, 0) != 0) return;
  }
  const std::uint64_t now = now_ns();
  if (now >= until_ns) return;
  const std::uint64_t left = until_ns - now;
  const timespec time{static_cast<std::time_t>(left / kSecondNs),
                      static_cast<long>(left % kSecondNs)};
  static_cast<void>(::ppoll(&watched, 1, &time, nullptr));
}

std::uint64_t UdpWire::now_ns() const { return base::monotonic_ns(); }

}  // namespace espalier::client
