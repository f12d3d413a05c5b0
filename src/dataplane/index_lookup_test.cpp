// SPDX-License-Identifier: Apache-2.0
#include "dataplane/index_lookup.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "dataplane/compiler.hpp"
#include "dataplane/testing/random_tree.hpp"

namespace espalier::dataplane {
namespace {

TEST(IndexLookup, RunsAreTheRangesThatTablesWereMadeOf) {
  const std::vector<std::uint64_t> lows{
      0, 1, 0x1'0000, 0x1'0001, 0xFFFF'0000'0000'0000, 0xFFFF'0000'0000'0001};
  const auto runs = range_runs(make_range_tables(lows));
  ASSERT_EQ(runs.size(), lows.size());
  for (std::uint32_t i = 0; i < lows.size(); ++i) EXPECT_EQ(runs[i], (RangeRun{lows[i], i}));
}

// Tables of any kind, such as are never compiled: results that come again, gaps, few bits.
TEST(IndexLookup, RunsSayWhatTablesOfAnyKindSay) {
  base::Random random(base::seed_from_environment(1));
  for (int round = 0; round < 300; ++round) {
    RangeTables tables{.bits_per_stage = 3, .preset = 9, .stages = {}};
    tables.stages.resize(3);
    std::uint32_t here = 1;
    for (auto& entries : tables.stages) {
      std::uint32_t below = 0;
      const bool is_last = &entries == &tables.stages.back();
      for (std::uint32_t table = 0; table < here; ++table) {
        for (std::uint16_t cell = 0; cell < 8; ++cell) {
          if (random.chance(0.4)) continue;
          RangeEntry entry{table, cell, cell, kDone, static_cast<std::uint32_t>(random.below(4))};
          if (!is_last && random.chance(0.3)) {
            entry.next = below++;
          } else if (random.chance(0.3)) {
            entry.last = cell = static_cast<std::uint16_t>(cell + random.below(8u - cell));
          }
          entries.push_back(entry);
        }
      }
      here = below;
    }
    const auto runs = range_runs(tables);
    ASSERT_EQ(runs.front().low, 0u);
    std::size_t run = 0;
    for (std::uint64_t key = 0; key < 512; ++key) {
      if (run + 1 < runs.size() && runs[run + 1].low == key) ++run;
      ASSERT_EQ(find_range(tables, key), runs[run].result) << "round " << round << " key " << key;
    }
    ASSERT_EQ(run, runs.size() - 1);
  }
}

TEST(IndexLookup, FindsWhatTheTablesDoRandom) {
  base::Random random(base::seed_from_environment(2));
  for (int round = 0; round < 100; ++round) {
    const TreeImage tree = random_tree(random, {.levels = 4, .children_max = 12, .here = 0.1});
    const IndexTables tables = compile(tree, {.ranges = 1 + random.below(60),
                                              .sets = random.below(4),
                                              .nodes_per_set = 1 + random.below(40)})
                                   .tables;
    const IndexLookup lookup(tables);
    for (const std::uint64_t key : border_keys(tree, random)) {
      ASSERT_EQ(lookup.find(key), find(tables, key)) << "round " << round << " key " << key;
    }
  }
}

std::vector<base::Isa> forms() {
  std::vector<base::Isa> forms{base::Isa::scalar};
  for (const base::Isa isa : {base::Isa::avx2, base::Isa::avx512}) {
    if (base::best_isa(base::cpu_features(), isa) == isa) forms.push_back(isa);
  }
  return forms;
}

void expect_alike(const IndexTables& tables, std::span<const std::uint64_t> keys,
                  base::Random& random) {
  for (const base::Isa isa : forms()) {
    const IndexLookup lookup(tables, isa);
    for (std::size_t at = 0; at < keys.size();) {
      const std::size_t count =
          std::min<std::size_t>(keys.size() - at, random.below(IndexLookup::kTogether + 1));
      std::vector<Found> found(count);
      lookup.find_together(keys.subspan(at, count), found);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(found[i], find(tables, keys[at + i])) << name(isa) << " key " << keys[at + i];
        ASSERT_EQ(found[i], lookup.find(keys[at + i])) << name(isa) << " key " << keys[at + i];
      }
      at += count;
    }
  }
}

TEST(IndexLookup, KeysTogetherFindWhatEachFindsAloneRandom) {
  base::Random random(base::seed_from_environment(4));
  for (int round = 0; round < 100; ++round) {
    const TreeImage tree = random_tree(random, {.levels = 4, .children_max = 12, .here = 0.1});
    const std::size_t ranges = 1 + random.below(60);
    const std::size_t sets = random.below(4);
    const std::size_t nodes = 1 + random.below(40);
    const auto compiled =
        compile(tree, {.ranges = ranges, .sets = sets, .nodes_per_set = nodes}).tables;
    expect_alike(compiled, border_keys(tree, random), random);
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
}

// Fat roots around each size at which there is a level more, and with runs up to the last number.
TEST(IndexLookup, FatRootsOfAnySizeAreSearchedTogetherRandom) {
  base::Random random(base::seed_from_environment(5));
  for (const std::size_t ranges :
       {1u, 2u, 15u, 16u, 17u, 31u, 33u, 255u, 256u, 257u, 600u, 1024u, 4095u, 4096u, 4097u}) {
    std::set<std::uint64_t> lows{0, std::numeric_limits<std::uint64_t>::max()};
    while (lows.size() < ranges) lows.insert(random());
    std::vector<std::uint64_t> sorted(lows.begin(), lows.end());
    if (random.chance(0.5) || ranges == 1) sorted.pop_back();
    IndexTables tables{.root = make_range_tables(sorted), .ways = {}, .sets = {}};
    std::vector<std::uint64_t> keys{std::numeric_limits<std::uint64_t>::max()};
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      tables.ways.push_back({1000 + i, kNoNode});
      for (const int by : {-1, 0, 1}) keys.push_back(sorted[i] + static_cast<std::uint64_t>(by));
      keys.push_back(random());
    }
    expect_alike(tables, keys, random);
    if (HasFatalFailure()) FAIL() << ranges << " ranges";
  }
}

TEST(IndexLookup, AnAddressThatMovesIsChangedWhereItStands) {
  base::Random random(base::seed_from_environment(3));
  for (int round = 0; round < 40; ++round) {
    const TreeImage tree = random_tree(random, {.levels = 3, .children_max = 20, .here = 0.1});
    IndexTables tables = compile(tree, {.ranges = 20, .sets = 2, .nodes_per_set = 20}).tables;
    IndexLookup lookup(tables);
    const auto node = static_cast<NodeNumber>(random.below(tree.size()));
    for (const EntryPlace& place : places_of(tables, tree.address(node))) {
      set_address(tables, place, 1 << 30);
      lookup.set_address(place, 1 << 30);
    }
    for (const std::uint64_t key : border_keys(tree, random)) {
      ASSERT_EQ(lookup.find(key), find(tables, key)) << "round " << round << " key " << key;
    }
  }
}

}  // namespace
}  // namespace espalier::dataplane
