// SPDX-License-Identifier: Apache-2.0
// What epochs cost: the readers' side, a stamp, and the scan of all slots.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/epoch.hpp"

namespace espalier::base {
namespace {

constexpr std::uint32_t kParticipants = 256;

struct alignas(64) Line {
  std::byte bytes[64];
};

class Fixture {
 public:
  Fixture()
      : lines_(EpochTable::bytes(kParticipants) / sizeof(Line)),
        table_(EpochTable::create(lines_.front().bytes, kParticipants)) {}
  EpochTable& table() { return table_; }

 private:
  std::vector<Line> lines_;
  EpochTable table_;
};

void enter_exit(benchmark::State& state) {
  Fixture fixture;
  EpochSlot slot = *fixture.table().join();
  for (auto _ : state) {
    slot.enter();
    benchmark::ClobberMemory();
    slot.exit();
  }
}
BENCHMARK(enter_exit);

void current(benchmark::State& state) {
  Fixture fixture;
  for (auto _ : state) benchmark::DoNotOptimize(fixture.table().current());
}
BENCHMARK(current);

void oldest(benchmark::State& state) {
  Fixture fixture;
  EpochSlot slot = *fixture.table().join();
  for (auto _ : state) benchmark::DoNotOptimize(fixture.table().oldest());
}
BENCHMARK(oldest);

}  // namespace
}  // namespace espalier::base

BENCHMARK_MAIN();
