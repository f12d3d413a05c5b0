// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control_stream.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"

namespace espalier::dataplane {

bool ControlStream::wait(short events, std::uint64_t until_ns) const {
  std::array<pollfd, 2> watched{pollfd{socket_, events, 0}, pollfd{wake_, POLLIN, 0}};
  for (;;) {
    int timeout_ms = -1;
    if (until_ns != kForEver) {
      const std::uint64_t now = base::monotonic_ns();
      if (now >= until_ns) return false;
      timeout_ms =
          static_cast<int>(std::min<std::uint64_t>((until_ns - now) / 1'000'000 + 1, 1000));
    }
    const int ready = ::poll(watched.data(), watched.size(), timeout_ms);
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    return watched[1].revents == 0;
  }
}

bool ControlStream::receive(std::uint64_t until_ns) {
  std::array<char, 65536> some;
  for (;;) {
    const ssize_t count = ::recv(socket_, some.data(), some.size(), MSG_DONTWAIT);
    if (count > 0) {
      come_.append(some.data(), static_cast<std::size_t>(count));
      return true;
    }
    if (count == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    if (!wait(POLLIN, until_ns)) return false;
  }
}

std::optional<std::string> ControlStream::line(std::uint64_t longest_ns, std::uint64_t begin_ns) {
  const std::uint64_t begin_until_ns =
      begin_ns == kForEver ? kForEver : base::monotonic_ns() + begin_ns;
  if (come_.empty() && !receive(begin_until_ns)) return std::nullopt;
  const std::uint64_t until_ns = base::monotonic_ns() + longest_ns;
  for (;;) {
    const std::size_t end = come_.find('\n');
    if (end != std::string::npos) {
      std::string line = come_.substr(0, end);
      come_.erase(0, end + 1);
      return line;
    }
    if (come_.size() > kLineBytesMax || !receive(until_ns)) return std::nullopt;
  }
}

std::optional<std::string> ControlStream::bytes(std::uint64_t count, std::uint64_t longest_ns) {
  const std::uint64_t until_ns = base::monotonic_ns() + longest_ns;
  while (come_.size() < count) {
    if (!receive(until_ns)) return std::nullopt;
  }
  std::string rest = come_.substr(count);
  come_.resize(count);
  return std::exchange(come_, std::move(rest));
}

bool ControlStream::send(std::string_view text, std::uint64_t longest_ns) {
  const std::uint64_t until_ns = base::monotonic_ns() + longest_ns;
  while (!text.empty()) {
    const ssize_t count = ::send(socket_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!wait(POLLOUT, until_ns)) {
      return false;
    }
  }
  return true;
}

}  // namespace espalier::dataplane
