// SPDX-License-Identifier: Apache-2.0
#include "tests/support/node_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/child_process.hpp"
#include "base/unix_address.hpp"

namespace espalier::test {
namespace {

namespace fs = std::filesystem;

base::UnixAddress address_of(const fs::path& path) {
  const auto address = base::UnixAddress::file(path.native());
  if (!address) throw std::runtime_error(message(address.error()));
  return *address;
}

memory::Descriptor listen_for_messages(const fs::path& path) {
  memory::Descriptor made(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const base::UnixAddress address = address_of(path);
  fs::remove(path);
  if (::bind(made.number(), address.get(), address.bytes()) != 0) {
    throw std::runtime_error("cannot listen");
  }
  return made;
}

/// Runs in the child, where nothing but system calls is safe.
[[noreturn]] void become_node(const char* folder, char* const* arguments, char* const* variables,
                              pid_t parent) {
  constexpr int kCannotStart = 127;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotStart);  // it ended before the line above
  const int log = ::chdir(folder) == 0 ? ::open("log", O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
  if (log < 0) ::_exit(kCannotStart);
  ::dup2(log, STDERR_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::execve(arguments[0], arguments, variables);
  ::_exit(kCannotStart);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

NodeProgram::NodeProgram(const fs::path& folder, const std::vector<std::string>& arguments)
    : socket_(folder / "notify"), messages_(listen_for_messages(socket_)) {
  std::vector<std::string> words = arguments;
  std::vector<std::string> variables{"NOTIFY_SOCKET=" + socket_.string()};
  const auto word_pointers = pointers(words);
  const auto variable_pointers = pointers(variables);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) {
    become_node(folder.c_str(), word_pointers.data(), variable_pointers.data(), parent);
  }
  if (process_ < 0) throw std::runtime_error("cannot fork");
  ended_ = memory::Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)));
  if (!ended_) throw std::runtime_error("cannot watch the process");
}

NodeProgram::~NodeProgram() {
  if (process_ < 0) return;
  send(SIGKILL);
  wait();
}

std::optional<std::string> NodeProgram::next_message() {
  std::array<pollfd, 2> watched{pollfd{messages_.number(), POLLIN, 0},
                                pollfd{ended_.number(), POLLIN, 0}};
  while (::poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) {
  }
  char text[256];
  const ssize_t got = ::recv(messages_.number(), text, sizeof text, MSG_DONTWAIT);
  if (got < 0) return std::nullopt;
  return std::string(text, static_cast<std::size_t>(got));
}

void NodeProgram::fill_messages() const {
  const memory::Descriptor made(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const base::UnixAddress address = address_of(socket_);
  while (::sendto(made.number(), "x", 1, MSG_DONTWAIT, address.get(), address.bytes()) == 1) {
  }
}

void NodeProgram::send(int signal) const { ::kill(process_, signal); }

void NodeProgram::stop() const {
  send(SIGSTOP);
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(process_), &info, WSTOPPED) != 0 && errno == EINTR) {
  }
}

int NodeProgram::wait() { return base::wait_for_child(std::exchange(process_, -1)); }

}  // namespace espalier::test
