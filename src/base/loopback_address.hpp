// SPDX-License-Identifier: Apache-2.0
// A TCP port of this machine's loopback interface, in the form that the operating system takes.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

namespace espalier::base {

class LoopbackAddress {
 public:
  /// `family`: AF_INET or AF_INET6. `port`: 0 lets bind() choose one.
  LoopbackAddress(int family, std::uint16_t port) {
    if (family == AF_INET6) {
      six_.sin6_family = AF_INET6;
      six_.sin6_port = htons(port);
      six_.sin6_addr = in6addr_loopback;
    } else {
      four_.sin_family = AF_INET;
      four_.sin_port = htons(port);
      four_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
  }

  [[nodiscard]] const sockaddr* get() const {
    return is_six() ? reinterpret_cast<const sockaddr*>(&six_)
                    : reinterpret_cast<const sockaddr*>(&four_);
  }
  [[nodiscard]] socklen_t bytes() const { return is_six() ? sizeof six_ : sizeof four_; }

 private:
  [[nodiscard]] bool is_six() const { return six_.sin6_family == AF_INET6; }

  sockaddr_in four_{};
  sockaddr_in6 six_{};
};

}  // namespace espalier::base
