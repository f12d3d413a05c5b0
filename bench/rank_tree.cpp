// SPDX-License-Identifier: Apache-2.0
#include "bench/rank_tree.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <span>

#include "base/random.hpp"
#include "base/zipf.hpp"
#include "dataplane/index_lookup.hpp"

namespace espalier::bench {
namespace {

// An address encodes the level of its node, so a lookup shows how many READs remain.
constexpr unsigned kLevelShift = 56;

std::uint64_t address_of(std::uint64_t level, std::uint64_t number) {
  return level << kLevelShift | (number + 1) * 64;
}

}  // namespace

std::vector<std::uint64_t> scattered_ranks(std::uint64_t keys, double theta, std::uint64_t seed) {
  std::vector<std::uint32_t> order(keys);
  std::iota(order.begin(), order.end(), 0u);
  base::Random random(seed);
  for (std::uint64_t i = keys; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  const double scale = 0x1p50 / base::zipf_sum(keys, theta);
  std::vector<std::uint64_t> accesses(keys);
  for (std::uint64_t rank = 0; rank < keys; ++rank) {
    accesses[order[rank]] =
        static_cast<std::uint64_t>(scale / std::pow(static_cast<double>(rank + 1), theta));
  }
  return accesses;
}

RankTree make_rank_tree(const std::vector<std::uint64_t>& accesses, std::uint32_t fanout) {
  RankTree made;
  const std::uint64_t keys = accesses.size();
  made.step = std::uint64_t{1} << (63 - std::bit_width(keys));
  std::vector<dataplane::NodeNumber> row(keys);
  for (std::uint64_t i = 0; i < keys; ++i) {
    row[i] = made.tree.add_leaf(address_of(0, i), accesses[i]);
  }
  std::uint64_t span = made.step;
  do {
    ++made.levels;
    std::vector<dataplane::NodeNumber> above;
    std::vector<std::uint64_t> separators;
    for (std::size_t begin = 0; begin < row.size(); begin += fanout) {
      const std::size_t end = std::min(begin + fanout, row.size());
      separators.clear();
      std::uint64_t passed = 0;
      for (std::size_t i = begin; i < end; ++i) {
        if (i != begin) separators.push_back(i * span);
        passed += made.tree.accesses(row[i]);
      }
      above.push_back(made.tree.add_node(address_of(made.levels, above.size()), passed, separators,
                                         std::span(row).subspan(begin, end - begin)));
    }
    row = std::move(above);
    span *= fanout;
  } while (row.size() > 1);
  made.tree.set_root(row.front());
  return made;
}

Trips count_trips(const RankTree& tree, const dataplane::IndexTables& tables,
                  const std::vector<std::uint64_t>& accesses) {
  const dataplane::IndexLookup lookup(tables);
  std::vector<double> sums(tree.levels + 2);
  for (std::uint64_t i = 0; i < accesses.size(); ++i) {
    const std::uint64_t level = lookup.find(i * tree.step).address >> kLevelShift;
    sums[level + 1] += static_cast<double>(accesses[i]);
  }
  const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
  Trips trips;
  double so_far = 0;
  for (std::uint32_t count = 0; count < sums.size(); ++count) {
    const double share = sums[count] / total;
    trips.shares.push_back(share);
    trips.mean += share * count;
    so_far += share;
    if (trips.p99 == 0 && so_far >= 0.99) trips.p99 = count;
  }
  return trips;
}

}  // namespace espalier::bench
