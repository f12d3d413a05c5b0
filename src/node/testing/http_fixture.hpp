// SPDX-License-Identifier: Apache-2.0
// HTTP byte by byte, as friends and foes send it to a port of this machine.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/loopback_address.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::node {

/// A connection that waits for what comes, but not for ever.
class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port, int family = AF_INET)
      : socket_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const base::LoopbackAddress address(family, port);
    connected_ = ::connect(socket_.number(), address.get(), address.bytes()) == 0;
  }

  [[nodiscard]] bool connected() const { return connected_; }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// All that comes until the other end closes.
  std::string receive_all() {
    std::string all;
    char bytes[4096];
    for (;;) {
      pollfd watched{socket_.number(), POLLIN, 0};
      if (::poll(&watched, 1, kTimeoutMs) <= 0) return all + " and no end";
      const ssize_t got = ::recv(socket_.number(), bytes, sizeof bytes, 0);
      if (got <= 0) return all;
      all.append(bytes, static_cast<std::size_t>(got));
    }
  }

 private:
  static constexpr int kTimeoutMs = 60'000;
  memory::Descriptor socket_;
  bool connected_ = false;
};

/// What is answered to these bytes.
inline std::string exchange(std::uint16_t port, std::string_view request, int family = AF_INET) {
  HttpClient client(port, family);
  EXPECT_TRUE(client.connected());
  EXPECT_TRUE(client.send(request));
  return client.receive_all();
}

inline std::string get(std::uint16_t port, const std::string& path, int family = AF_INET) {
  return exchange(port, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n", family);
}

inline std::string status_of(const std::string& response) {
  return response.substr(0, response.find("\r\n"));
}

inline std::string body_of(const std::string& response) {
  const std::size_t end = response.find("\r\n\r\n");
  return end == std::string::npos ? "" : response.substr(end + 4);
}

}  // namespace espalier::node
