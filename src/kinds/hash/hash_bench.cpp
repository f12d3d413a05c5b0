// SPDX-License-Identifier: Apache-2.0
// Gets and puts of pairs of 16 + 48 bytes, one by one and in flight, beside what the machine does
// with random lines; and bytes for a pair while a map grows.
//
//   HASH_BENCH_PAIRS=10000000 hash_bench       10 M pairs; 1 M where it is not set
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "kinds/hash/hash_pipeline.hpp"
#include "memory/region.hpp"
#include "store/store_core.hpp"

namespace espalier::hash {
namespace {

constexpr std::size_t kKeyBytes = 16;
constexpr std::size_t kValueBytes = 48;
/// With which a record, its header included, is one line.
constexpr std::size_t kLineValueBytes = 32;
constexpr std::size_t kBatch = 4096;
/// So many that the lines that they touch fit no cache.
constexpr std::size_t kDrawn = std::size_t{1} << 22;

std::uint64_t pairs() {
  static const std::uint64_t count = [] {
    const char* const asked = std::getenv("HASH_BENCH_PAIRS");
    return asked != nullptr ? std::strtoull(asked, nullptr, 10) : std::uint64_t{1'000'000};
  }();
  return count;
}

/// The i-th key, 16 bytes long.
struct Key {
  std::uint64_t words[2];
  explicit Key(std::uint64_t i) : words{base::mix64(i + 1), i} {}
  Key() : words{} {}
  [[nodiscard]] std::string_view view() const {
    return {reinterpret_cast<const char*>(words), kKeyBytes};
  }
};

/// A store with one full map; made once for each way of versions.
struct World {
  World(bool versions, std::uint64_t count, std::size_t value_bytes = kValueBytes)
      : core(*memory::Region::reserve({.bytes_max = pairs() * 160 + (std::uint64_t{256} << 20)}),
             8),
        map(create_hash_map(store, "map", {.versions = versions}).value()),
        thread(HashThread::join(store).value()) {
    const char value[kValueBytes] = {};
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!map->put(thread, Key(i).view(), {value, value_bytes})) std::abort();
    }
  }
  static World& full(bool versions, std::size_t value_bytes = kValueBytes) {
    static std::unique_ptr<World> world;
    static std::pair<bool, std::size_t> made;
    if (world == nullptr || made != std::pair(versions, value_bytes)) {
      world.reset();
      world = std::make_unique<World>(versions, pairs(), value_bytes);
      made = {versions, value_bytes};
    }
    return *world;
  }

  tree::StoreCore core;
  HashStore& store = hash_store_of(core.catalog);
  std::shared_ptr<HashMap> map;
  HashThread thread;
};

/// Random pairs, asked for by numbers drawn beforehand.
std::vector<Key> drawn_keys(std::uint64_t seed) {
  base::Random random(seed);
  std::vector<Key> keys(kDrawn);
  for (Key& key : keys) key = Key(random.below(pairs()));
  return keys;
}

void count(benchmark::State& state, World& world) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kBatch));
  const double bytes = static_cast<double>(world.map->numbers().memory_bytes);
  state.counters["bytes_a_pair"] = bytes / static_cast<double>(world.map->numbers().entries);
}

void get_one_by_one(benchmark::State& state) {
  World& world = World::full(state.range(0) != 0);
  const std::vector<Key> keys = drawn_keys(1);
  std::size_t at = 0;
  std::vector<char> ring(64 * 1024);
  for (auto _ : state) {
    HashReader reader(*world.map, world.thread);
    for (std::size_t i = 0; i < kBatch; ++i) {
      const HashAnswer answer = reader.get(keys[at++ % keys.size()].view());
      if (!answer.found) return state.SkipWithError("a pair is missing");
      std::memcpy(ring.data() + i % 1024 * 64, answer.value.data(), kValueBytes);
    }
    benchmark::DoNotOptimize(ring.data());
  }
  count(state, world);
}
BENCHMARK(get_one_by_one)->ArgName("versions")->Arg(1)->Arg(0);

/// Arguments: versions, puts in a hundred, and the distances of the pipeline.
void in_flight(benchmark::State& state) {
  World& world = World::full(state.range(0) != 0);
  const auto puts = static_cast<std::uint64_t>(state.range(1));
  const std::vector<Key> keys = drawn_keys(2);
  const PipelineDistances distances{static_cast<std::uint32_t>(state.range(2)),
                                    static_cast<std::uint32_t>(state.range(3)),
                                    static_cast<std::uint32_t>(state.range(4))};
  HashPipeline pipeline(*world.map, world.thread, distances);
  base::Random random(3);
  const char value[kValueBytes] = {1};
  std::vector<Request> requests;
  for (const Key& key : keys) {
    const bool put = random.below(100) < puts;
    requests.push_back({put ? Op::put : Op::get,
                        0,
                        0,
                        key.view(),
                        {},
                        put ? std::string_view(value, sizeof value) : std::string_view()});
  }
  std::vector<char> ring(64 * 1024);
  std::size_t at = 0;
  for (auto _ : state) {
    std::size_t i = 0;
    const auto batch = std::span(requests).subspan(at, kBatch);
    at = (at + kBatch) % requests.size();
    pipeline.run(batch, [&](const Completion& done) {
      if (!done.value.empty()) {
        std::memcpy(ring.data() + i++ % 1024 * 64, done.value.data(), kValueBytes);
      }
    });
    benchmark::DoNotOptimize(ring.data());
  }
  count(state, world);
}
BENCHMARK(in_flight)
    ->ArgNames({"versions", "puts", "bin", "record", "near"})
    ->ArgsProduct({{1, 0}, {0, 50}, {32}, {16}, {4}})
    ->Args({1, 0, 16, 8, 2})
    ->Args({1, 0, 24, 12, 4})
    ->Args({1, 0, 48, 24, 8})
    ->Args({1, 0, 60, 30, 8})
    ->Args({1, 0, 60, 20, 0});

/// Gets of records that are one line long: what the header of those of 16 + 48 bytes costs, which
/// makes a second one.
void get_of_one_line(benchmark::State& state) {
  World& world = World::full(true, kLineValueBytes);
  const std::vector<Key> keys = drawn_keys(2);
  HashPipeline pipeline(*world.map, world.thread);
  std::vector<Request> requests;
  for (const Key& key : keys) {
    requests.push_back({Op::get, 0, 0, key.view(), {}, {}});
  }
  std::vector<char> ring(64 * 1024);
  std::size_t at = 0;
  for (auto _ : state) {
    std::size_t i = 0;
    const auto batch = std::span(requests).subspan(at, kBatch);
    at = (at + kBatch) % requests.size();
    pipeline.run(batch, [&](const Completion& done) {
      std::memcpy(ring.data() + i++ % 1024 * 64, done.value.data(), kLineValueBytes);
    });
    benchmark::DoNotOptimize(ring.data());
  }
  count(state, world);
}
BENCHMARK(get_of_one_line);

/// Lines of the map's own records, whose addresses are known: what it costs without all else.
void lines_of_records(benchmark::State& state) {
  World& world = World::full(true);
  std::vector<const std::byte*> drawn;
  drawn.reserve(kDrawn);
  for (const Key& key : drawn_keys(2)) {
    const KeyHash hash = world.map->hash(key.view());
    const Looked looked = look_up(*world.map, hash, key.view(), kAnyVersion, true);
    drawn.push_back(world.map->image + looked.record.offset());
  }
  const auto ahead = static_cast<std::size_t>(state.range(0));
  std::size_t at = 0;
  std::uint64_t sum = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < kBatch; ++i, ++at) {
      __builtin_prefetch(drawn[(at + ahead) % drawn.size()], 0, 2);
      sum += base::load_plain<std::uint64_t>(drawn[at % drawn.size()]);
    }
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kBatch));
}
BENCHMARK(lines_of_records)->ArgName("ahead")->Arg(32);

/// What the machine does: random lines of as much memory, asked for so many loads ahead, to L2.
void random_lines(benchmark::State& state) {
  const std::uint64_t lines = pairs() * 2;
  auto region = *memory::Region::reserve({.bytes_max = lines * 64 + (std::uint64_t{16} << 20)});
  const auto offset = region.take(lines * 64 / memory::kExtentBytes + 1).value();
  std::byte* const base = region.at(offset);
  std::memset(base, 1, lines * 64);
  const auto ahead = static_cast<std::size_t>(state.range(0));
  base::Random random(4);
  std::vector<std::uint32_t> drawn(kDrawn);
  for (std::uint32_t& one : drawn) one = static_cast<std::uint32_t>(random.below(lines));
  std::size_t at = 0;
  std::uint64_t sum = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < kBatch; ++i, ++at) {
      __builtin_prefetch(base + std::uint64_t{drawn[(at + ahead) % drawn.size()]} * 64, 0, 2);
      std::uint64_t word = 0;
      std::memcpy(&word, base + std::uint64_t{drawn[at % drawn.size()]} * 64, sizeof word);
      sum += word;
    }
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kBatch));
}
BENCHMARK(random_lines)->ArgName("ahead")->Arg(16)->Arg(32)->Arg(64);

/// Inserts from nothing: the time of one, and the bytes of a pair at the worst moment.
void grow(benchmark::State& state) {
  const std::uint64_t most = std::min<std::uint64_t>(pairs(), 2'000'000);
  double worst = 0;
  double sum = 0;
  std::uint64_t samples = 0;
  for (auto _ : state) {
    World world(state.range(0) != 0, 0);
    const char value[kValueBytes] = {};
    for (std::uint64_t i = 0; i < most; ++i) {
      if (!world.map->put(world.thread, Key(i).view(), {value, sizeof value})) break;
      if (i % 4096 != 0 || i < most / 4) continue;
      const double bytes = static_cast<double>(world.map->numbers().memory_bytes);
      worst = std::max(worst, bytes / static_cast<double>(i + 1));
      sum += bytes / static_cast<double>(i + 1);
      ++samples;
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * most));
  state.counters["worst_bytes_a_pair"] = worst;
  state.counters["mean_bytes_a_pair"] = sum / static_cast<double>(samples);
}
BENCHMARK(grow)->ArgName("versions")->Arg(1)->Arg(0)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace espalier::hash

BENCHMARK_MAIN();
