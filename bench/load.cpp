// SPDX-License-Identifier: Apache-2.0
#include "bench/load.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "base/clock.hpp"
#include "bench/probe.hpp"
#include "bench/request_list.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kSayEveryNs = 200'000'000;

}  // namespace

void require_no_errors(TargetKind kind, const Answers& answers) {
  if (answers.errors() == 0) return;
  throw std::runtime_error(fmt::format("{}: {} operations failed, the first one: {}", name(kind),
                                       answers.errors(), answers.first_error()));
}

double load_keys(Target& target, TargetKind kind, const KeySet& keys, ValueLength values,
                 const std::function<void(std::uint64_t percent)>& say) {
  std::uint64_t spent_ns = 0;
  run_pinned([&] {
    const std::unique_ptr<TargetSession> session = target.open_session();
    Answers answers;
    std::uint64_t said_ns = 0;
    RequestList window(kWindow);
    for (std::uint64_t first = 0; first < keys.size(); first += kWindow) {
      const std::uint64_t count = std::min(kWindow, keys.size() - first);
      fill_load_window(keys, first, count, values, window);
      const base::Stopwatch watch;
      session->run(window.requests(), answers);
      spent_ns += watch.elapsed_ns();
      require_no_errors(kind, answers);
      if (base::monotonic_ns() - said_ns < kSayEveryNs) continue;
      said_ns = base::monotonic_ns();
      say(100 * first / keys.size());
    }
  });
  target.finish_load();
  return static_cast<double>(keys.size()) * 1e9 /
         static_cast<double>(std::max<std::uint64_t>(1, spent_ns));
}

}  // namespace espalier::bench
