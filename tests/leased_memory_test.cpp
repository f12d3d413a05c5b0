// SPDX-License-Identifier: Apache-2.0
// Memory that remote readers hold by leases, on real nodes: a full node still erases, and leases
// alone hold at most an eighth.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/sizes.hpp"

namespace espalier::test {
namespace {

constexpr std::size_t kPutsAtATime = 4096;

/// Counts what became of requests.
struct LeasedOutcomes final : Handler {
  void done(const Completion& completion) override {
    ++(completion.ok ? done_ones : failed);
    if (!completion.ok) {
      code = completion.error.code;
    } else if (!puts.empty()) {
      puts[completion.tag] = true;
    }
  }
  std::vector<bool> puts;
  std::uint64_t done_ones = 0;
  std::uint64_t failed = 0;
  Code code = Code::invalid;
};

std::string random_long_key(Random& random) {
  std::string key(16, 0);
  for (char& letter : key) letter = static_cast<char>(random.below(256));
  return key;
}

/// Does one operation on each of these keys. Returns which failed, and how.
LeasedOutcomes run_all(Pipeline& pipeline, Op op, const std::vector<std::string>& keys,
                       std::string_view value = {}) {
  std::vector<Request> requests(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    requests[i].op = op;
    requests[i].tag = i;
    requests[i].key = keys[i];
    requests[i].value = value;
  }
  LeasedOutcomes outcomes;
  outcomes.puts.resize(keys.size());
  pipeline.run(requests, outcomes);
  return outcomes;
}

/// Puts values under random keys until some were refused; returns the keys of the others.
std::vector<std::string> fill(Pipeline& pipeline, std::string_view value, std::size_t at_a_time,
                              Random& random) {
  std::vector<std::string> keys;
  for (bool refused = false; !refused;) {
    std::vector<std::string> some(at_a_time);
    for (std::string& key : some) key = random_long_key(random);
    const LeasedOutcomes outcomes = run_all(pipeline, Op::put, some, value);
    refused = outcomes.failed != 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (outcomes.puts[i]) keys.push_back(some[i]);
    }
  }
  return keys;
}

class LeasedMemoryConcurrency : public NodeFixture {
 protected:
  LeasedMemoryConcurrency() {
    reach_by("shm");
    config_.node.one_sided = true;
    config_.node.cores = 2;
  }
  [[nodiscard]] Store connect_one_sided() const {
    auto store = Store::connect(address(), {.access = Access::one_sided});
    EXPECT_TRUE(store) << message(store.error());
    return std::move(*store);
  }
  [[nodiscard]] tree::StoreCore& store() { return node_->store(); }
};

TEST_F(LeasedMemoryConcurrency, AFullNodeErasesBesideAReader) {
  const std::uint64_t seed = seed_from_environment(163);
  SCOPED_TRACE(seed_text(seed));
  Random random(seed);
  config_.memory.limit = 12 * kMiB;
  start();
  Store writing = connect();
  Map map = *writing.open_map("default");
  auto pipeline = Pipeline::open(map, 32);
  ASSERT_TRUE(pipeline);
  Store reading = connect_one_sided();
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> reads{0};
  std::jthread reader([&] {
    Map alone = *reading.open_map("default");
    Random keys(seed + 1);
    for (; !over; ++reads) {
      const auto found = alone.get(random_long_key(keys));
      ASSERT_TRUE(found) << message(found.error());
    }
  });
  const std::vector<std::string> keys = fill(*pipeline, "sixteen letters.", kPutsAtATime, random);
  EXPECT_NE(reads, 0u);
  const LeasedOutcomes erased = run_all(*pipeline, Op::erase, keys);
  over = true;
  EXPECT_EQ(erased.failed, 0u) << "of " << keys.size() << ": " << message({erased.code, 0, 0});
}

// A scan whose sink waits for the writer: its lease is renewed, and holds all that is replaced.
TEST_F(LeasedMemoryConcurrency, LeasesAloneHoldAtMostAnEighth) {
  const std::uint64_t seed = seed_from_environment(164);
  SCOPED_TRACE(seed_text(seed));
  Random random(seed);
  config_.memory.limit = 32 * kMiB;
  start();
  Store writing = connect();
  Map map = *writing.open_map("default");
  auto pipeline = Pipeline::open(map, 32);
  ASSERT_TRUE(pipeline);
  const std::string value(16'000, 'v');
  std::vector<std::string> keys = fill(*pipeline, value, 64, random);
  const std::vector<std::string> third(keys.end() - static_cast<std::ptrdiff_t>(keys.size() / 3),
                                       keys.end());
  keys.resize(keys.size() - third.size());
  ASSERT_EQ(run_all(*pipeline, Op::erase, third).failed, 0u);
  Store reading = connect_one_sided();
  for (int round = 0; round < (kSanitized ? 1 : 5); ++round) {
    std::atomic<bool> scanning{false};
    std::atomic<bool> over{false};
    std::jthread reader([&] {
      Map alone = *reading.open_map("default");
      const auto sink = [&](std::span<const Item>) {
        scanning = true;
        while (!over) std::this_thread::yield();
        return true;
      };
      const auto scanned = alone.scan("", "", sink);  // it may end with an error: its lease did
      if (!scanned) {
        EXPECT_EQ(scanned.error().code, Code::contended);
      }
    });
    while (!scanning) std::this_thread::yield();
    for (int all = 0; all < 4; ++all) {
      const LeasedOutcomes put = run_all(*pipeline, Op::put, keys, value);
      EXPECT_EQ(put.failed, 0u) << "of " << keys.size() << ": " << message({put.code, 0, 0});
    }
    EXPECT_LE(store().reclaimer.bytes_held_by_leases(), config_.memory.limit / 8);
    EXPECT_EQ(store().leases.size(), 0u) << "the lease of the scan held the oldest epoch";
    over = true;
  }
}

}  // namespace
}  // namespace espalier::test
