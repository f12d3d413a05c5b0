// SPDX-License-Identifier: Apache-2.0
// Two threads answer each other: one counts up on its line, the other repeats the count on its own.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/cpu.hpp"

namespace espalier::base {
namespace {

constexpr std::size_t kLineBytes = 128;  // two lines: the prefetcher fetches them in pairs

struct Lines {
  alignas(kLineBytes) std::atomic<std::uint64_t> ping{0};
  alignas(kLineBytes) std::atomic<std::uint64_t> pong{0};
};

void answer(Lines& lines, std::uint64_t last) {
  for (std::uint64_t count = 1; count <= last; ++count) {
    while (lines.ping.load(std::memory_order_acquire) < count) spin_pause();
    lines.pong.store(count, std::memory_order_release);
  }
}

std::vector<double> ask(Lines& lines, unsigned rounds, unsigned round_trips) {
  std::vector<double> round_ns;
  std::uint64_t count = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    const Stopwatch watch;
    for (unsigned trip = 0; trip < round_trips; ++trip) {
      lines.ping.store(++count, std::memory_order_release);
      while (lines.pong.load(std::memory_order_acquire) < count) spin_pause();
    }
    round_ns.push_back(static_cast<double>(watch.elapsed_ns()) / round_trips);
  }
  std::sort(round_ns.begin(), round_ns.end());
  return round_ns;
}

}  // namespace

Result<PingPong> measure_ping_pong(unsigned first_core, unsigned second_core, unsigned rounds,
                                   unsigned round_trips) {
  if (first_core == second_core || rounds == 0 || round_trips == 0) {
    return fail(Code::invalid_argument);
  }
  Lines lines;
  Result<void> first_pinned;
  Result<void> second_pinned;
  std::vector<double> round_ns;
  {
    // Threads of its own, so that the caller's stays where it is. Both go on where pinning failed,
    // or the other would wait for ever; only the result is thrown away.
    std::jthread second([&] {
      second_pinned = pin_this_thread(second_core);
      answer(lines, std::uint64_t{rounds} * round_trips);
    });
    std::jthread first([&] {
      first_pinned = pin_this_thread(first_core);
      round_ns = ask(lines, rounds, round_trips);
    });
  }
  if (!first_pinned) return std::unexpected(first_pinned.error());
  if (!second_pinned) return std::unexpected(second_pinned.error());
  return PingPong{round_ns.front(), round_ns[round_ns.size() / 2], round_ns.back()};
}

}  // namespace espalier::base
