// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control_stream.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "dataplane/control_line.hpp"

namespace espalier::dataplane {

// Also where bytes trickle.
void ControlStream::look(const Wait& wait) {
  const std::uint64_t now = base::monotonic_ns();
  if (!wait.meanwhile || now - looked_ns_ < kLookNs) return;
  looked_ns_ = now;
  wait.meanwhile();
}

bool ControlStream::ready(short events, const Wait& wait) {
  pollfd watched{socket_, events, 0};
  for (;;) {
    const std::uint64_t now = base::monotonic_ns();
    if (now >= wait.until_ns) return false;
    const std::uint64_t look_ns = std::min(wait.until_ns - now, kLookNs);
    const int ready = ::poll(&watched, 1, static_cast<int>(look_ns / 1'000'000 + 1));
    if (ready < 0 && errno != EINTR) return false;
    if (ready > 0) return true;
    look(wait);
  }
}

bool ControlStream::receive(const Wait& wait) {
  std::array<char, 65536> some;
  for (;;) {
    const ssize_t count = ::recv(socket_, some.data(), some.size(), MSG_DONTWAIT);
    if (count > 0) {
      come_.append(some.data(), static_cast<std::size_t>(count));
      look(wait);
      return true;
    }
    if (count == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    if (!ready(POLLIN, wait)) return false;
  }
}

std::optional<std::string> ControlStream::line(const Wait& wait) {
  for (;;) {
    const std::size_t end = come_.find('\n');
    if (end != std::string::npos) {
      std::string line = come_.substr(0, end);
      come_.erase(0, end + 1);
      return line;
    }
    if (come_.size() > kControlLineBytesMax || !receive(wait)) return std::nullopt;
  }
}

std::optional<std::string> ControlStream::bytes(std::uint64_t count, const Wait& wait) {
  while (come_.size() < count) {
    if (!receive(wait)) return std::nullopt;
  }
  std::string rest = come_.substr(count);
  come_.resize(count);
  return std::exchange(come_, std::move(rest));
}

bool ControlStream::send(std::string_view text, const Wait& wait) {
  while (!text.empty()) {
    const ssize_t count = ::send(socket_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
      look(wait);
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!ready(POLLOUT, wait)) {
      return false;
    }
  }
  return true;
}

}  // namespace espalier::dataplane
