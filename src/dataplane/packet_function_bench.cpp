// SPDX-License-Identifier: Apache-2.0
// What a frame costs a switch: one that passes (parsing alone), and one that is redirected by a fat
// root alone and by a fat root and three sets of nodes, of frames one after another;
// and what the first, a middle and the last of three switches in a row take.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/random.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/packet_function.hpp"
#include "dataplane/testing/even_tree.hpp"
#include "dataplane/testing/read_frame.hpp"
#include "dataplane/way_tables.hpp"

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
// The fat root and a set in the first, a set in each of the others.
void process_in_row(benchmark::State& state, std::size_t at) {
  const WayBudget way{.ranges = 600, .hops = {{1, 3600}, {1, 3600}, {1, 3600}}};
  const IndexTables tables = compile(tree(), *limits_of(way)).tables;
  std::vector<PacketFunction> switches;
  for (const SwitchProgram& each : cut_program(kKeys, tables, way, 7)) {
    switches.push_back(each.function());
  }
  const auto outcome_at = [&](std::size_t i, std::vector<std::byte>& frame) {
    const std::size_t bytes = frame.size();
    if (i == 0) frame.resize(bytes + kShimBytes);  // the first adds the shim
    return switches[i].process(std::span(frame).first(bytes), {i == 0, i == 2, kShimBytes}).outcome;
  };
  const Outcome wanted = at == 2 ? Outcome::redirected : Outcome::carried;
  // Those whose walk comes so far and, but for the last, goes on: the tables end at some sooner.
  std::vector<std::vector<std::byte>> frames;
  for (std::vector<std::byte>& frame : make_frames(kKeys.keyed)) {
    bool comes = true;
    for (std::size_t i = 0; i < at && comes; ++i) comes = outcome_at(i, frame) == Outcome::carried;
    std::vector<std::byte> tried = frame;
    if (comes && outcome_at(at, tried) == wanted) frames.push_back(std::move(frame));
  }
  if (frames.empty()) return state.SkipWithError("no frame comes so far");
  const Hop hop{at == 0, at == 2, kShimBytes};
  std::vector<std::byte> frame(frames.front().size() + kShimBytes);
  const auto whole = std::span(frame).first(frames.front().size());
  std::size_t next = 0;
  benchmark::IterationCount went_on = 0;
  for (auto _ : state) {
    std::copy(frames[next].begin(), frames[next].end(), frame.begin());
    const Outcome outcome = switches[at].process(whole, hop).outcome;
    went_on += outcome == wanted ? 1 : 0;
    benchmark::DoNotOptimize(frame.data());
    benchmark::ClobberMemory();
    next = (next + 1) % frames.size();
  }
  if (went_on != state.iterations()) state.SkipWithError("outcome");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(process_in_row, first, 0);
BENCHMARK_CAPTURE(process_in_row, middle, 1);
BENCHMARK_CAPTURE(process_in_row, last, 2);

BENCHMARK_CAPTURE(process, passes, kKeys.keyed + 9, 3);
BENCHMARK_CAPTURE(process, fat_root, kKeys.keyed, 0);
BENCHMARK_CAPTURE(process, fat_root_and_three_sets, kKeys.keyed, 3);

}  // namespace
}  // namespace espalier::dataplane

BENCHMARK_MAIN();
