// SPDX-License-Identifier: Apache-2.0
#include "dataplane/switch_threads.hpp"

namespace espalier::dataplane {
namespace {

// Polls without a frame before the switch sleeps.
constexpr std::uint32_t kQuietPolls = 2000;
constexpr std::uint64_t kLongestSleepNs = 1'000'000'000;

}  // namespace

SwitchThreads::SwitchThreads(MemifSwitch& forwards, ControlServer& serves, bool spin)
    : switch_(forwards),
      server_(serves),
      spin_(spin),
      forwarding_([this] { forward(); }),
      controlling_([this] { server_.run(); }) {}

SwitchThreads::~SwitchThreads() {
  ends_.store(true);
  switch_.wake();
  server_.stop();
  forwarding_.join();
  controlling_.join();
}

void SwitchThreads::forward() {
  std::uint32_t quiet = 0;
  while (!ends_.load(std::memory_order_relaxed)) {
    quiet = switch_.poll() == 0 ? quiet + 1 : 0;
    if (quiet < kQuietPolls || spin_) continue;
    switch_.wait(kLongestSleepNs);
    quiet = 0;
  }
}

}  // namespace espalier::dataplane
