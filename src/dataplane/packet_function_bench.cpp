// SPDX-License-Identifier: Apache-2.0
// What a frame costs a switch: one that passes (parsing alone), and one that is redirected by a fat
// root alone and by a fat root and three sets of nodes, of frames one after another.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/random.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/packet_function.hpp"
#include "dataplane/testing/even_tree.hpp"
#include "dataplane/testing/read_frame.hpp"

namespace espalier::dataplane {
namespace {

constexpr MapKeys kKeys{1, 2};
constexpr std::size_t kFrames = 4096;

// 248 832 leaves below five levels of 12 children, all passed as often as each other.
const TreeImage& tree() {
  static const TreeImage made = [] {
    std::vector<std::uint64_t> accesses(12 * 12 * 12 * 12 * 12, 1);
    return even_tree(5, 12, 0x1234'5678'9ABC, accesses);
  }();
  return made;
}

std::vector<std::vector<std::byte>> make_frames(std::uint32_t key) {
  base::Random random(1);
  std::vector<std::vector<std::byte>> frames;
  for (std::size_t i = 0; i < kFrames; ++i) {
    frames.push_back(keyed_frame(random.below(std::uint64_t{248'832} * 0x1234'5678'9ABC), key));
  }
  return frames;
}

void process(benchmark::State& state, std::uint32_t key, std::size_t sets) {
  PacketFunction function;
  const IndexTables tables = compile(tree(), {.ranges = 600, .sets = sets}).tables;
  function.add(kKeys, tables);
  const auto frames = make_frames(key);
  std::vector<std::byte> frame(frames.front().size());
  std::size_t at = 0;
  benchmark::IterationCount redirected = 0;
  for (auto _ : state) {
    std::copy(frames[at].begin(), frames[at].end(), frame.begin());
    redirected += function.process(frame).outcome == Outcome::redirected ? 1 : 0;
    benchmark::DoNotOptimize(frame.data());
    benchmark::ClobberMemory();
    at = (at + 1) % kFrames;
  }
  const bool all = key == kKeys.keyed;
  if (redirected != (all ? state.iterations() : 0)) state.SkipWithError("outcome");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(process, passes, kKeys.keyed + 9, 3);
BENCHMARK_CAPTURE(process, fat_root, kKeys.keyed, 0);
BENCHMARK_CAPTURE(process, fat_root_and_three_sets, kKeys.keyed, 3);

}  // namespace
}  // namespace espalier::dataplane

BENCHMARK_MAIN();
