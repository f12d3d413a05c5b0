// SPDX-License-Identifier: Apache-2.0
#include "tools/stop_signals.hpp"

#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.hpp"

namespace espalier::tools {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

/// The signal that came, and about it `info`; 0: none within the time.
int wait_for(const sigset_t& signals, std::optional<std::uint64_t> at_most_ns, siginfo_t& info) {
  const std::uint64_t begin = base::monotonic_ns();
  for (;;) {
    if (!at_most_ns) {
      const int signal = ::sigwaitinfo(&signals, &info);
      if (signal > 0) return signal;
      continue;
    }
    const std::uint64_t gone = base::monotonic_ns() - begin;
    const std::uint64_t left = *at_most_ns > gone ? *at_most_ns - gone : 0;
    const timespec time{static_cast<time_t>(left / kSecondNs), static_cast<long>(left % kSecondNs)};
    const int signal = ::sigtimedwait(&signals, &info, &time);
    if (signal > 0) return signal;
    if (errno != EINTR) return 0;
  }
}

}  // namespace

StopSignals::StopSignals(Hangup hangup) {
  ::sigemptyset(&signals_);
  ::sigaddset(&signals_, SIGTERM);
  ::sigaddset(&signals_, SIGINT);
  if (hangup == Hangup::waited_for) ::sigaddset(&signals_, SIGHUP);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

// A request to read the configuration that came too late must not end what stops already.
StopSignals::~StopSignals() {
  sigset_t late;
  ::sigemptyset(&late);
  if (::sigismember(&signals_, SIGHUP) == 1) ::sigaddset(&late, SIGHUP);
  const timespec now{};
  while (::sigtimedwait(&late, nullptr, &now) > 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopSignals::stop_this_process() noexcept { ::kill(::getpid(), SIGTERM); }

std::string StopSignals::wait(std::optional<std::uint64_t> at_most_ns) {
  siginfo_t info{};
  const int signal = wait_for(signals_, at_most_ns, info);
  sender_ = "process " + std::to_string(info.si_pid) + " of user " + std::to_string(info.si_uid);
  if (signal == SIGHUP) return "SIGHUP";
  if (signal == 0) return "";  // they stay blocked: it waits again, or ends
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::sigaddset(&ending, SIGINT);
  ::pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
  return signal == SIGTERM ? "SIGTERM" : "SIGINT";
}

}  // namespace espalier::tools
