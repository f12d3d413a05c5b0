// SPDX-License-Identifier: Apache-2.0
// Scans in parallel parts of a map under concurrent writes: all parts are of one moment, for each
// place of the map and of the walk, and together they deliver what one scan would.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

constexpr int kPartKeys = 600;

std::string part_key(int i) { return "key" + std::to_string(1'000 + i); }

/// What a scan delivered, and the first thing that is wrong with it.
struct PartsSeen {
  int items = 0;
  std::string value;
  std::string wrong;
};

/// Scans the keys [low, high) in parts, of which all have one value.
PartsSeen scan_parts(const Map& map, int low, int high, ScanOptions options) {
  PartsSeen seen;
  const auto count = map.scan(
      part_key(low), part_key(high),
      [&](std::span<const Item> items) {
        for (const Item& item : items) {
          const int number = options.reverse ? high - 1 - seen.items : low + seen.items;
          if (item.key != part_key(number)) seen.wrong = "out of order: " + std::string(item.key);
          if (seen.items++ == 0) seen.value = item.value;
          if (item.value == seen.value) continue;
          seen.wrong = std::string(item.key) + " is of another moment";
        }
        return seen.wrong.empty();
      },
      options);
  if (!count) seen.wrong = message(count.error());
  if (count && seen.wrong.empty() && *count != static_cast<std::uint64_t>(seen.items)) {
    seen.wrong = "it counted " + std::to_string(*count);
  }
  return seen;
}

/// Writes all keys in one batch, repeatedly.
class WritesAll {
 public:
  explicit WritesAll(const Map& map) : map_(map), thread_([this] { work(); }) {}
  ~WritesAll() {
    stopping_ = true;
    thread_.join();
  }
  WritesAll(const WritesAll&) = delete;
  WritesAll& operator=(const WritesAll&) = delete;
  static bool write(Map& map, std::uint64_t round) {
    WriteBatch batch;
    const std::string value = "round " + std::to_string(round) + std::string(40, '.');
    for (int i = 0; i < kPartKeys; ++i) batch.put(part_key(i), value);
    return map.write(batch).has_value();
  }
  [[nodiscard]] std::uint64_t rounds() const { return rounds_; }

 private:
  void work() {
    while (!stopping_) {
      EXPECT_TRUE(write(map_, ++rounds_));
    }
  }

  Map map_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> rounds_{0};
  std::thread thread_;
};

class ScanPartsConcurrency : public NodeOverEachWay {};

TEST_P(ScanPartsConcurrency, AllPartsAreOfOneMoment) {
  config_.node.leases = kLeasesThatLast;
  start();
  Store writers = connect();
  Map written = *writers.create_map("tested", {.node_bytes = 1024});
  ASSERT_TRUE(WritesAll::write(written, 0));
  Store readers = connect();
  Map read = *readers.open_map("tested");
  Random random(seed_from_environment(45));
  const WritesAll beside(written);
  std::string value;
  std::uint64_t moved = 0;
  for (std::uint64_t i = steps_or(kSanitized ? 30 : 150); i != 0; --i) {
    // Now and then all has been written since.
    const std::uint64_t before = i % 10 == 0 ? beside.rounds() + 1 : 0;
    while (before != 0 && beside.rounds() <= before && !HasFailure()) std::this_thread::yield();
    const int low = static_cast<int>(random.below(kPartKeys / 2));
    const int high = low + 1 + static_cast<int>(random.below(kPartKeys / 2));
    const PartsSeen seen = scan_parts(
        read, low, high,
        {.reverse = random.one_in(3), .parts = static_cast<std::uint32_t>(random.below(12))});
    ASSERT_EQ(seen.wrong, "") << "[" << low << ", " << high << ")";
    ASSERT_EQ(seen.items, high - low);
    moved += seen.value != value ? 1 : 0;
    value = seen.value;
  }
  EXPECT_GE(moved, 2u) << "hardly anything was written meanwhile";
  EXPECT_GE(beside.rounds(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Each, ScanPartsConcurrency,
                         ::testing::Values("unix", "shm_one_sided", "memif_one_sided", "in_network",
                                           "device"),
                         way_name);

}  // namespace
}  // namespace espalier::test
