// SPDX-License-Identifier: Apache-2.0
// A rolling load: clients connect, work, leave, violate the protocol and are killed; and afterwards
// the node holds what it held after the first part.
//
// By default some dozens of clients; ESPALIER_LOAD_SECONDS sets a duration (scripts/load-test.sh).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "espalier/map.hpp"
#include "tests/support/forked_node.hpp"
#include "tests/support/load_worker.hpp"
#include "tests/support/node_config.hpp"
#include "tests/support/rolling_load.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/sizes.hpp"

namespace espalier::test {
namespace {

// Allowed growth from the first part of a run to its last; in runs with a duration, from the first
// part by which so many clients have connected, since that depends on the machine. The region grows
// by the needs of the busiest moment, which vary by some extents of 2 MiB.
constexpr std::uint64_t kClientsOfABusyMoment = 400;
constexpr std::uint64_t kRegionMayGrow = 24 * kMiB;
// Over a fabric what a killed client holds is held until it is missed, so moments differ more.
constexpr std::uint64_t kRegionMayGrowByFabrics = 48 * kMiB;
// Places in flight keep some room for the next request: at most 128 KiB each of the 2 * 64 that
// keep so much, but mostly far less.
constexpr std::uint64_t kHeapMayGrow = 8 * kMiB;
// Besides the region: the heap, and pages of the region that were reserved before and touched
// since. A sanitizer keeps freed memory.
constexpr std::uint64_t kResidentMayGrow = (kSanitized ? 512 : 16) * kMiB;
// A tree that was emptied keeps a few nodes until it is written to again.
constexpr std::uint64_t kEmptyTreeMayKeep = kMiB / 2;
// One for walks and one for calls, for each core; all other maps have been dropped.
constexpr std::uint64_t kParticipantsOfOneMap = 2 * 2;

std::uint64_t load_seconds() {
  const char* text = std::getenv("ESPALIER_LOAD_SECONDS");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

class NodeLoadConcurrency : public ::testing::Test {
 protected:
  static void report(std::size_t part, const IdleNumbers& now, const RollingLoadCounts& counts) {
    fmt::print(
        "part {:2}: {} clients came, {} of them over a fabric, {} went, {} were killed, {} hostile "
        "ones died; {} requests; region {:.1f} MiB, nodes {:.2f}, values {:.2f}, waiting {:.2f}; "
        "resident {:.1f} MiB, heap {:.2f}; {} descriptors\n",
        part, counts.came, counts.by_fabric, counts.went, counts.killed, counts.hostile,
        now.requests, mebibytes(now.taken_bytes), mebibytes(now.node_bytes),
        mebibytes(now.value_bytes), mebibytes(now.retired_bytes), mebibytes(now.resident_bytes),
        mebibytes(now.heap_bytes), now.descriptors);
    std::fflush(stdout);
  }
  static double mebibytes(std::uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(kMiB);
  }

  /// Whose clients come by its socket, and, if it has such addresses, over a fabric as well.
  void expect_flat_memory(const std::string& fabric);

  base::TemporaryFolder folder_;
  node::Config config_ = node_config(folder_, 2);
};

void NodeLoadConcurrency::expect_flat_memory(const std::string& fabric) {
  const std::uint64_t seed = base::seed_from_environment(81);
  SCOPED_TRACE(seed_text(seed));
  const std::uint64_t seconds = load_seconds();
  // Sessions over a fabric stay for a while, for clients that come back.
  const std::size_t parts = seconds != 0 ? 10 : fabric.empty() ? 3 : 2;
  const std::uint64_t clients_of_a_part = scaled(30);
  config_.node.fabric = fabric;
  config_.clients.resume_seconds = 2;
  ForkedNode node(config_, {.silence_ns = 500'000'000});
  const IdleNumbers empty = node.idle_numbers();
  RollingLoad load(
      {.socket = config_.node.socket, .fabric = node.fabric_addresses(), .seed = seed});
  std::vector<IdleNumbers> after;
  std::size_t first_busy = 0;  // of the parts; at half time at the latest
  for (std::size_t part = 1; part <= parts; ++part) {
    const base::Stopwatch watch;
    IdleNumbers now;
    load.run([&](const RollingLoadCounts& counts) {
      if (seconds == 0) {
        // However slow all of it is: of each kind there was one more.
        return counts.came >= part * clients_of_a_part && counts.went >= part &&
               counts.killed >= part && counts.hostile >= part;
      }
      return watch.elapsed_ns() >= seconds * 1'000'000'000 / parts;
    });
    static_cast<void>(
        node.idle_numbers());  // the dead have been buried, with what they had in flight
    load.tidy_up();
    // Schedulers release dropped maps, and endpoints closed connections, in their periodic checks.
    do {
      now = node.idle_numbers();
    } while (now.epoch_participants > kParticipantsOfOneMap ||
             now.descriptors != empty.descriptors);
    after.push_back(now);
    const bool busy = seconds == 0 || load.counts().came >= kClientsOfABusyMoment;
    if (!busy && part < parts / 2) first_busy = part;
    report(part, now, load.counts());
    EXPECT_EQ(now.items, 0u);
    EXPECT_EQ(now.snapshots, 0u);
    EXPECT_EQ(now.long_message_bytes, 0u);
    EXPECT_LE(now.node_bytes, empty.node_bytes + kEmptyTreeMayKeep);
    EXPECT_EQ(now.value_bytes, 0u);
  }
  const std::uint64_t region = fabric.empty() ? kRegionMayGrow : kRegionMayGrowByFabrics;
  const IdleNumbers& before = after[first_busy];
  EXPECT_LE(after.back().taken_bytes, before.taken_bytes + region);
  EXPECT_LE(after.back().heap_bytes, before.heap_bytes + kHeapMayGrow);
  EXPECT_LE(after.back().resident_bytes, before.resident_bytes + region + kResidentMayGrow);
  EXPECT_GT(load.counts().went, 0u);
  EXPECT_GT(load.counts().killed, 0u);
  EXPECT_GT(load.counts().hostile, 0u);
  EXPECT_GE(load.counts().by_fabric, fabric.empty() ? 0u : parts);
  EXPECT_EQ(node.stop(), "");
}

TEST_F(NodeLoadConcurrency, MemoryIsFlatWhileClientsComeGoAndDie) { expect_flat_memory(""); }

TEST_F(NodeLoadConcurrency, MemoryIsFlatWhileClientsComeOverFabricsToo) {
  expect_flat_memory("shm:" + (folder_ / "fabric").string() + " roce://127.0.0.1:0/1 roce+memif:" +
                     (folder_ / "memif").string() + " ofi://tcp/127.0.0.1:0");
}

// Room that requests needed for their answers is given back, but for a little.
TEST_F(NodeLoadConcurrency, MemoryComesBackAfterManyLargeAnswersAtATime) {
  ForkedNode node(config_);
  {
    auto store = Store::connect("unix:" + config_.node.socket);
    ASSERT_TRUE(store) << message(store.error());
    Map map = *store->open_map("default");
    for (const char* const key : {"a", "b", "c"}) {
      ASSERT_TRUE(map.put(key, std::string(256 * 1024, 'v')));
    }
    struct Count : Handler {
      void done(const Completion& completion) override { good += completion.ok ? 1 : 0; }
      std::size_t good = 0;
    } count;
    auto pipeline = Pipeline::open(map, 256);
    ASSERT_TRUE(pipeline) << message(pipeline.error());
    Request scan;
    scan.op = Op::scan;
    const std::vector<Request> scans(scaled(1000), scan);
    pipeline->run(scans, count);
    EXPECT_EQ(count.good, scans.size());
  }
  const IdleNumbers now = node.idle_numbers();
  constexpr std::uint64_t kAtMost =
      24 * kMiB;  // each of 256 answers had a quarter of a MiB and more
  EXPECT_LE(now.heap_bytes, kAtMost);
  EXPECT_EQ(node.stop(), "");
}

// The load detects faults: a worker whose keys another client writes finds a wrong answer.
TEST_F(NodeLoadConcurrency, AWorkerNoticesWhatItDidNotWrite) {
  ForkedNode node(config_);
  const std::string address = "unix:" + config_.node.socket;
  LoadWorker worker(address, "mine/", "1", 1);
  auto store = Store::connect(address);
  ASSERT_TRUE(store) << message(store.error());
  Map map = *store->open_map("default");
  EXPECT_THROW(worker.work(1'000'000, [&] { ASSERT_TRUE(map.put("mine/1 7x", "not mine")); }),
               std::runtime_error);
}

}  // namespace
}  // namespace espalier::test
