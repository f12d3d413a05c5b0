// SPDX-License-Identifier: Apache-2.0
// What a buffer costs: from the pool under its lock, and from a thread's cache.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "memory/buffer_cache.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::memory {
namespace {

constexpr SizeClass kNode = node_class_of(8192);

Region region() {
  return *Region::reserve({.bytes_max = std::uint64_t{256} << 20, .huge_pages = true});
}

void pool_pair(benchmark::State& state) {
  Region memory = region();
  BufferPool pool(memory);
  for (auto _ : state) pool.release(*pool.allocate(kNode), kNode);
}
BENCHMARK(pool_pair);

void cache_pair(benchmark::State& state) {
  Region memory = region();
  BufferPool pool(memory);
  BufferCache cache(pool);
  for (auto _ : state) cache.release(*cache.allocate(kNode), kNode);
}
BENCHMARK(cache_pair);

/// Many are allocated and then released, so that the cache refills and flushes.
void cache_waves(benchmark::State& state) {
  Region memory = region();
  BufferPool pool(memory);
  BufferCache cache(pool);
  std::vector<std::uint64_t> held(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    for (std::uint64_t& offset : held) offset = *cache.allocate(kNode);
    for (const std::uint64_t offset : held) cache.release(offset, kNode);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(cache_waves)->Arg(1000)->Arg(20000);

}  // namespace
}  // namespace espalier::memory

BENCHMARK_MAIN();
