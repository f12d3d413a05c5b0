// SPDX-License-Identifier: Apache-2.0
#include "bench/line_points.hpp"

#include <algorithm>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "bench/probe.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kLineWarmUpOps = 1000;

/// Draws keys that a transaction does not have yet.
void draw_keys(base::Random& random, std::uint64_t pairs, std::size_t count,
               const std::vector<std::uint64_t>& others, std::vector<std::uint64_t>& keys) {
  keys.clear();
  while (keys.size() < count) {
    const std::uint64_t key = random.below(pairs);
    if (std::ranges::count(keys, key) + std::ranges::count(others, key) == 0) keys.push_back(key);
  }
}

PointSample run_line(const LinePoint& point) {
  const auto line = open_chain_line(point.way, point.setting);
  base::Random random(point.seed);
  LineTransaction next;
  PointSample sample;
  const auto draw = [&] {
    ++next.number;
    draw_keys(random, point.setting.pairs, point.reads, {}, next.reads);
    draw_keys(random, point.setting.pairs, point.writes, next.reads, next.writes);
  };
  const std::uint64_t warm_up = std::min(kLineWarmUpOps, point.ops);
  for (std::uint64_t i = 0; i < warm_up; ++i) {
    draw();
    sample.checksum += line->transact(next);
  }
  const LineCounts before = line->counts();
  std::uint64_t spent_ns = 0;
  for (std::uint64_t i = 0; i < point.ops; ++i) {
    draw();
    const base::Stopwatch watch;
    sample.checksum += line->transact(next);
    const std::uint64_t took_ns = watch.elapsed_ns();
    sample.latencies.record(took_ns);
    spent_ns += took_ns;
  }
  const LineCounts after = line->counts();
  sample.took(point.ops, static_cast<double>(spent_ns) / 1e9);
  const auto ops = static_cast<double>(point.ops);
  sample.numbers.emplace_back("round_trips_per_op",
                              static_cast<double>(after.hops - before.hops) / 2 / ops);
  sample.numbers.emplace_back("bytes_per_op",
                              static_cast<double>(after.bytes - before.bytes) / ops);
  const std::uint64_t granules = after.placed.granules - before.placed.granules;
  sample.numbers.emplace_back("granules_per_op", static_cast<double>(granules) / ops);
  sample.checksum += line->contents();
  return sample;
}

}  // namespace

PointSample measure_line(const LinePoint& point) {
  PointSample sample;
  run_pinned([&] { sample = run_line(point); });
  return sample;
}

}  // namespace espalier::bench
