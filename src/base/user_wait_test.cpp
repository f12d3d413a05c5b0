// SPDX-License-Identifier: Apache-2.0
#include "base/user_wait.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/atomic_bytes.hpp"

namespace espalier::base {
namespace {

// It returns for a write, for a word that has changed already, and for neither.
TEST(UserWait, ReturnsWhateverHappens) {
  alignas(64) std::byte line[64] = {};
  for (int i = 0; i < 1000; ++i) wait_for_write(line, 0);
  for (int i = 0; i < 1000; ++i) wait_for_write(line, 1);
}

TEST(UserWaitConcurrency, SeesEveryWriteOfAnother) {
  constexpr std::uint32_t kRounds = 20'000;
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  Line ping;
  Line pong;
  const auto wait_until = [](const Line& line, std::uint32_t value) {
    for (;;) {
      const auto seen = load_shared<std::uint32_t>(line.bytes, std::memory_order_acquire);
      if (seen == value) return;
      wait_for_write(line.bytes, seen);
    }
  };
  std::thread other([&] {
    for (std::uint32_t i = 1; i <= kRounds; ++i) {
      wait_until(ping, i);
      store_shared(pong.bytes, i, std::memory_order_release);
    }
  });
  for (std::uint32_t i = 1; i <= kRounds; ++i) {
    store_shared(ping.bytes, i, std::memory_order_release);
    wait_until(pong, i);
  }
  other.join();
}

}  // namespace
}  // namespace espalier::base
