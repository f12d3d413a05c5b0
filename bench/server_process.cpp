// SPDX-License-Identifier: Apache-2.0
#include "bench/server_process.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/child_process.hpp"

namespace espalier::bench {
namespace {

// Uses vfork, since a fork would mark all memory of the targets in this process as shared, and each
// page would fault once more under the clock.
pid_t start(const char* program, char* const* arguments, int output) {
  const pid_t parent = ::getpid();
  const pid_t child = ::vfork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended before the line above
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  ::execv(program, arguments);
  ::_exit(127);
}

}  // namespace

ServerProcess::ServerProcess(std::vector<std::string> words, int output) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  process_ = start(words.front().c_str(), arguments.data(), output);
  if (process_ < 0) {
    throw std::runtime_error(
        fmt::format("cannot start {}: {}", words.front(), std::strerror(errno)));
  }
}

bool ServerProcess::runs() {
  siginfo_t ended{};
  const int asked =
      ::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT);
  return asked == 0 && ended.si_pid == 0;
}

ServerProcess::~ServerProcess() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  base::wait_for_child(process_);
}

}  // namespace espalier::bench
