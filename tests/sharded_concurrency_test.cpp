// SPDX-License-Identifier: Apache-2.0
// Threads on a map over several nodes: reads across borders are of one moment, checked by a search
// for linearizations, and by a writer that goes from node to node.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/workload.hpp"

namespace espalier::test {
namespace {

class ShardedConcurrency : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    reach_by(GetParam());
    start();
  }
  Map make(Store& store, const std::vector<std::string>& borders, const MapOptions& options = {}) {
    make_sharded("s", options, borders);
    auto map = store.open_map("s");
    if (!map) throw std::runtime_error(message(map.error()));
    return *map;
  }
  [[nodiscard]] bool three() const { return way_ == "sharded_three"; }
};

INSTANTIATE_TEST_SUITE_P(By, ShardedConcurrency,
                         ::testing::Values("sharded", "sharded_three", "sharded_one_sided"),
                         way_name);

// Short ones, so that the search ends; scans, counts and snapshots cross borders all the time.
TEST_P(ShardedConcurrency, HistoriesHaveALinearization) {
  const std::uint64_t first = seed_from_environment(61);
  SCOPED_TRACE(seed_text(first));
  WorkloadReport report;
  for (std::uint64_t i = 0; i < scaled(3); ++i) {
    WorkloadOptions options;
    options.seed = first + i;
    options.keys = 12;
    options.threads = 3;
    options.pipelines = 1;
    options.in_flight = 4;
    options.operations = 40;
    options.operations_per_phase = 20;
    options.rounds = 4;
    options.batches = false;  // they cross borders
    options.replay = false;   // each node numbers its own writes
    options.search = true;
    options.audit = false;
    const auto keys = make_keys(options.pattern, options.keys, 460, options.seed);
    Store store = connect();
    std::vector<std::string> borders{keys[keys.size() / 2]};
    if (three()) borders = {keys[keys.size() / 3], keys[2 * keys.size() / 3]};
    std::ranges::sort(borders);
    Map map = make(store, borders, {.node_bytes = 512, .log_bytes = 128});
    ASSERT_EQ(run_and_check(map, options, &report).value_or(""), "");
    ASSERT_TRUE(store.drop_map("s"));
  }
  EXPECT_GT(report.overlapping, 0u);
  EXPECT_GT(report.searched, report.histories / 2);
}

/// A writer that increments on one node after another: reads of one moment return equal numbers, or
/// one more on the nodes that it has already passed.
TEST_P(ShardedConcurrency, AWriterThatGoesFromNodeToNodeIsNeverSeenOnTheLaterOneFirst) {
  Store store = connect();
  const std::vector<std::string> borders =
      three() ? std::vector<std::string>{"h", "p"} : std::vector<std::string>{"m"};
  Map map = make(store, borders);
  const std::vector<std::string> keys =
      three() ? std::vector<std::string>{"a", "k", "z"} : std::vector<std::string>{"a", "z"};
  for (const std::string& key : keys) ASSERT_TRUE(map.add(key, 0) == 0u);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> rounds{0};
  std::thread writer([&] {
    std::uint64_t written = 0;
    while (!stop) {
      ++written;
      for (const std::string& key : keys) {
        const auto sum = map.add(key, 1);
        ASSERT_TRUE(sum) << message(sum.error());
        ASSERT_EQ(*sum, written);
      }
      rounds = written;
    }
  });
  std::uint64_t cuts = 0;
  std::uint64_t changed = 0;
  std::uint64_t last = 0;
  const auto number = [](std::string_view value) {
    std::uint64_t read = 0;
    std::memcpy(&read, value.data(), std::min(value.size(), sizeof read));
    return read;
  };
  Random random(base::seed_from_environment(62));
  // Those that are busy do not count, as far as there are not too many of them.
  for (std::uint64_t i = 0; i < scaled(20) || (cuts < 2 && i < 20); ++i) {
    const std::uint64_t before = rounds;
    // All keys have risen since the last.
    while (rounds <= before + 1 && !HasFailure()) std::this_thread::yield();
    std::vector<std::uint64_t> seen;
    const auto sink = [&](std::span<const Item> items) {
      for (const Item& item : items) seen.push_back(number(item.value));
      return true;
    };
    const bool reverse = random.one_in(2);
    const ScanOptions options{.reverse = reverse,
                              .parts = static_cast<std::uint32_t>(random.below(6))};
    Result<std::uint64_t> scanned = fail(Code::invalid);
    if (random.one_in(2)) {
      scanned = map.scan({}, {}, sink, options);
    } else {
      const auto snapshot = map.snapshot();
      if (snapshot) scanned = snapshot->scan({}, {}, sink, options);
      if (!snapshot) scanned = std::unexpected(snapshot.error());
    }
    // A machine that is busy may keep no hold for long enough.
    if (!scanned && scanned.error().code == Code::busy) continue;
    if (!scanned) ADD_FAILURE() << message(scanned.error());
    if (!scanned || seen.size() != keys.size()) break;
    if (reverse) std::ranges::reverse(seen);
    ++cuts;
    EXPECT_TRUE(std::ranges::is_sorted(seen, std::greater<>())) << seen[0] << ' ' << seen[1];
    EXPECT_LE(seen.front(), seen.back() + 1);
    EXPECT_GE(seen.back(), last);
    if (seen.back() > last) ++changed;
    last = seen.back();
  }
  stop = true;
  writer.join();
  EXPECT_GT(cuts, 0u);
  EXPECT_GT(changed, 0u);
  RecordProperty("cuts", std::to_string(cuts));
}

}  // namespace
}  // namespace espalier::test
