// SPDX-License-Identifier: Apache-2.0
#include "tests/support/child.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "base/child_process.hpp"

namespace espalier::test {
namespace {

// A child whose body threw.
constexpr int kThrew = 99;

bool send_all(int socket, const char* at, std::size_t bytes) {
  while (bytes != 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, char* at, std::size_t bytes) {
  while (bytes != 0) {
    const ssize_t got = ::recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

[[noreturn]] void live(const std::function<int(Line&)>& body, Line line) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = kThrew;
  try {
    code = body(line);
  } catch (const std::exception& error) {
    static_cast<void>(line.send(error.what()));
  }
  ::_exit(code);
}

}  // namespace

bool Line::send(std::string_view message) {
  const std::uint64_t bytes = message.size();
  return send_all(end_.number(), reinterpret_cast<const char*>(&bytes), sizeof bytes) &&
         send_all(end_.number(), message.data(), message.size());
}

bool Line::receive(std::string& message) {
  std::uint64_t bytes = 0;
  if (!receive_all(end_.number(), reinterpret_cast<char*>(&bytes), sizeof bytes)) return false;
  message.resize(bytes);
  return receive_all(end_.number(), message.data(), message.size());
}

Child::Child(const std::function<int(Line&)>& body) : line_(memory::Descriptor()) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error("no socket pair");
  }
  memory::Descriptor ours(ends[0]);
  memory::Descriptor theirs(ends[1]);
  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error("cannot fork");
  if (process_ == 0) {
    ours.close();
    live(body, Line(std::move(theirs)));
  }
  line_ = Line(std::move(ours));
}

Child::Child(Child&& other) noexcept
    : process_(std::exchange(other.process_, -1)), line_(std::move(other.line_)) {}

Child::~Child() {
  if (process_ < 0) return;
  kill();
  wait();
}

void Child::kill() const { ::kill(process_, SIGKILL); }

int Child::wait() { return base::wait_for_child(std::exchange(process_, -1)); }

}  // namespace espalier::test
