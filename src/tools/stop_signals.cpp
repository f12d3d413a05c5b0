// SPDX-License-Identifier: Apache-2.0
#include "tools/stop_signals.hpp"

#include <time.h>

#include <cerrno>

#include "base/clock.hpp"

namespace espalier::tools {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

/// The signal that came; 0: none within the time.
int wait_for(const sigset_t& signals, std::optional<std::uint64_t> at_most_ns) {
  const std::uint64_t begin = base::monotonic_ns();
  for (;;) {
    int signal = 0;
    if (!at_most_ns) {
      if (sigwait(&signals, &signal) == 0) return signal;
      continue;
    }
    const std::uint64_t gone = base::monotonic_ns() - begin;
    const std::uint64_t left = *at_most_ns > gone ? *at_most_ns - gone : 0;
    const timespec time{static_cast<time_t>(left / kSecondNs), static_cast<long>(left % kSecondNs)};
    signal = sigtimedwait(&signals, nullptr, &time);
    if (signal > 0) return signal;
    if (errno != EINTR) return 0;
  }
}

}  // namespace

StopSignals::StopSignals() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

StopSignals::~StopSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::string StopSignals::wait(std::optional<std::uint64_t> at_most_ns) {
  const int signal = wait_for(signals_, at_most_ns);
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  if (signal == 0) return "";
  return signal == SIGTERM ? "SIGTERM" : "SIGINT";
}

}  // namespace espalier::tools
