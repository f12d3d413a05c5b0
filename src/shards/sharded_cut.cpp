// SPDX-License-Identifier: Apache-2.0
#include "shards/sharded_cut.hpp"

#include <utility>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "channel/draw_seed.hpp"
#include "shards/cut_steps.hpp"
#include "shards/pause.hpp"

namespace espalier::client {
namespace {

// Between two tries to hold all nodes: a node grants one in 50 ms, to the first client that asks.
constexpr std::uint64_t kPauseMostNs = 60'000'000;

}  // namespace

Version Cut::version() const {
  Version sum = 0;
  for (const auto& part : parts) sum += part->version();
  return sum;
}

Result<Cut> take_cut(std::shared_ptr<ShardNodes> nodes, std::size_t first, std::size_t last) {
  Cut cut{std::move(nodes), first, {}};
  std::vector<CutPart*> parts;
  for (std::size_t i = first; i <= last; ++i) {
    const auto map = cut.nodes->shard(i);
    if (!map) return std::unexpected(map.error());
    auto part = (*map)->prepare_snapshot();
    if (!part) return std::unexpected(error_of_shard(part.error(), i));
    cut.parts.push_back(std::move(*part));
    parts.push_back(cut.parts.back().get());
  }
  const base::Stopwatch watch;
  base::Random random(draw_seed());
  // A while by chance, so that clients that met do not meet again.
  const auto go_on = [&] {
    pause_for(random.below(kPauseMostNs));
    return watch.elapsed_ns() < kHoldsNs;
  };
  const auto name = [first](const Error& error, std::size_t part) {
    return error_of_shard(error, first + part);
  };
  if (const auto done = cut_all(parts, name, go_on); !done) return std::unexpected(done.error());
  return cut;
}

}  // namespace espalier::client
