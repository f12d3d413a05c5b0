// SPDX-License-Identifier: Apache-2.0
#include "bench/node_process.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "bench/errno_failure.hpp"
#include "bench/own_node.hpp"

namespace espalier::bench {
namespace {

constexpr char kNodeListens = '+';

void say(int line, const std::string& text) {
  static_cast<void>(::send(line, text.data(), text.size(), MSG_NOSIGNAL));
}

// Runs the node until the parent closes its end of the pipe.
[[noreturn]] void be_the_node(int line, pid_t parent, const node::Config& config) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended before the line above
  // Closes the parent's descriptors, which would count as the node's.
  constexpr int kLineDescriptor = STDERR_FILENO + 1;
  if (line != kLineDescriptor) ::dup2(line, kLineDescriptor);
  ::close_range(kLineDescriptor + 1, ~0U, 0);
  try {
    const auto node = start_own_node(config);
    say(kLineDescriptor, std::string(1, kNodeListens));
    char nothing = 0;
    while (::read(kLineDescriptor, &nothing, 1) < 0 && errno == EINTR) {
    }
  } catch (const std::exception& error) {
    say(kLineDescriptor, error.what());
  }
  ::_exit(0);
}

}  // namespace

NodeProcess::NodeProcess(const node::Config& config) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    fail_with_errno("cannot make a pair of sockets");
  }
  line_ = memory::Descriptor(ends[0]);
  memory::Descriptor child_line(ends[1]);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0) fail_with_errno("cannot start a process for the node");
  if (process_ == 0) be_the_node(child_line.number(), parent, config);
  child_line.close();
  char words[512];
  ssize_t got = -1;
  do {
    got = ::read(line_.number(), words, sizeof words);
  } while (got < 0 && errno == EINTR);
  if (got == 1 && words[0] == kNodeListens) return;
  line_.close();
  base::wait_for_child(process_);
  throw std::runtime_error(got > 0 ? std::string(words, static_cast<std::size_t>(got))
                                   : "the node's process ended before it listened");
}

NodeProcess::~NodeProcess() {
  line_.close();
  base::wait_for_child(process_);
}

void NodeProcess::watch(double seconds) const {
  const base::Stopwatch watch;
  const auto until_ns = static_cast<std::uint64_t>(seconds * 1e9);
  for (std::uint64_t spent_ns = 0; spent_ns < until_ns; spent_ns = watch.elapsed_ns()) {
    pollfd at{.fd = line_.number(), .events = POLLIN, .revents = 0};
    const auto left_ms = static_cast<int>((until_ns - spent_ns + 999'999) / 1'000'000);
    if (::poll(&at, 1, left_ms) > 0) throw std::runtime_error("the node's process ended");
  }
}

std::uint64_t cpu_ns_of(pid_t process) {
  std::uint64_t sum = 0;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process))) {
    std::ifstream file(thread.path() / "schedstat");
    std::uint64_t ran_ns = 0;
    if (!(file >> ran_ns)) {
      if (!std::filesystem::exists(thread.path())) continue;  // it has ended meanwhile
      throw std::runtime_error("/proc does not tell how long threads ran (CONFIG_SCHED_INFO)");
    }
    sum += ran_ns;
  }
  return sum;
}

std::uint64_t descriptors_of(pid_t process) {
  const std::filesystem::directory_iterator entries(fmt::format("/proc/{}/fd", process));
  return static_cast<std::uint64_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace espalier::bench
