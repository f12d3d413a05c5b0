// SPDX-License-Identifier: Apache-2.0
// Maps of one group on a node, read over every channel while transactions write all of them: a
// reader that has seen one of a transaction's writes sees all of them, in each map that it reads
// next.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/random.hpp"
#include "espalier/hash_map.hpp"
#include "espalier/transaction.hpp"
#include "node/metrics.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

// The first is the one whose tables a switch follows.
constexpr const char* kOrdered[] = {"tested", "beside"};
constexpr const char* kHashed[] = {"first", "second"};
const MapOptions kSmall{.node_bytes = 1024, .log_bytes = 256};

class GroupsConcurrency : public NodeOverEachWay {
 protected:
  void SetUp() override {
    config_.node.leases = kLeasesThatLast;
    start();
    writing_.emplace(*Store::connect("unix:" + socket()));
    MapOptions ordered = kSmall;
    ordered.group = "bank";
    HashMapOptions hashed;
    hashed.partitions = 2;
    hashed.group = "bank";
    for (const char* const name : kOrdered) ASSERT_TRUE(writing_->create_map(name, ordered));
    for (const char* const name : kHashed) ASSERT_TRUE(writing_->create_hash_map(name, hashed));
  }
  /// Writes a number to all maps, and other keys, so that leaves and bins change.
  void write(std::uint64_t number) {
    Transaction transaction;
    const std::string beside = std::to_string(number % 300);
    for (const auto& names : {kOrdered, kHashed}) {
      for (const char* const name : {names[0], names[1]}) {
        transaction.put(name, "n", std::to_string(number)).put(name, beside, "beside");
      }
    }
    const auto done = writing_->transact(transaction);
    ASSERT_TRUE(done) << message(done.error());
  }
  [[nodiscard]] std::uint64_t gets_asked_for() const {
    std::uint64_t sum = 0;
    for (const node::OffloadNumbers& offload : node::numbers_of(*node_).offloads) {
      const bool get =
          offload.id == wire::OffloadId::get || offload.id == wire::OffloadId::hash_get;
      if (get) sum += offload.requests;
    }
    return sum;
  }

  std::optional<Store> writing_;
};

/// Reads the number in one map or another, by a store of its own.
class GroupReader {
 public:
  explicit GroupReader(Store store) : store_(std::move(store)) {
    for (std::size_t i = 0; i < 2; ++i) {
      ordered_[i] = *store_.open_map(kOrdered[i]);
      hashed_[i] = *store_.open_hash_map(kHashed[i]);
    }
  }
  [[nodiscard]] std::optional<std::uint64_t> read(std::size_t which) const {
    const auto found = which < 2 ? ordered_[which]->get("n") : hashed_[which - 2]->get("n");
    if (!found) {
      ADD_FAILURE() << message(found.error());
      return std::nullopt;
    }
    return *found ? std::stoull((*found)->value) : 0;
  }

 private:
  Store store_;
  std::optional<Map> ordered_[2];
  std::optional<HashMap> hashed_[2];
};

TEST_P(GroupsConcurrency, NobodySeesOneWriteOfTwo) {
  const std::uint64_t seed = seed_from_environment(832);
  SCOPED_TRACE(seed_text(seed));
  // Packets are slow on a busy machine: one read between two writes, or walks would restart
  // forever.
  const bool by_packets = way_.starts_with("roce") || way_ == "in_network";
  const std::uint64_t wanted = scaled(by_packets ? 40 : 400);
  const std::uint64_t asked_before = gets_asked_for();
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> written{0};
  std::atomic<bool> stopped{false};
  std::string wrong;
  std::thread reader([&] {
    base::Random random(seed);
    const GroupReader group(connect());
    std::uint64_t seen = 0;
    std::size_t before = 0;
    for (; reads.load() < wanted && wrong.empty(); reads.fetch_add(1)) {
      const std::uint64_t least = std::max(seen, written.load());
      const std::size_t which = random.below(4);
      const auto now = group.read(which);
      if (!now) break;
      if (*now < least) {
        wrong = "map " + std::to_string(which) + " has " + std::to_string(*now) + " after " +
                std::to_string(least) + ", and map " + std::to_string(before) + " was read before";
      }
      seen = *now;
      before = which;
    }
    stopped = true;
  });
  std::uint64_t number = 0;
  while (!stopped.load()) {
    write(++number);
    if (HasFatalFailure()) break;
    written = number;
    const std::uint64_t before = reads.load();
    while (by_packets && reads.load() == before && !stopped.load()) std::this_thread::yield();
  }
  reader.join();
  EXPECT_EQ(wrong, "");
  EXPECT_EQ(reads.load(), wanted);
  EXPECT_GT(number, 1u);
  const GroupReader group(connect());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(group.read(i), number);
  if (std::string(GetParam()).ends_with("one_sided")) {
    EXPECT_LT(gets_asked_for() - asked_before, wanted / 4) << "reads went by the rings";
  }
}

TEST_P(GroupsConcurrency, MapsOfOtherGroupsAreRefused) {
  MapOptions other = kSmall;
  other.group = "other";
  ASSERT_TRUE(writing_->create_map("other", other));
  ASSERT_TRUE(writing_->create_map("none", kSmall));
  const Store store = connect();
  EXPECT_EQ(store.open_map("other")->options().group, "other");
  EXPECT_EQ(store.open_map("none")->options().group, "");
  EXPECT_EQ(store.open_hash_map("first")->options().group, "bank");
  const auto all = store.hash_maps();
  ASSERT_TRUE(all);
  for (const HashMapDescription& listed : *all) EXPECT_EQ(listed.options.group, "bank");
  for (const std::string name : {"other", "none"}) {
    const auto refused =
        writing_->transact(Transaction().put("tested", "k", "1").put(name, "k", "1"));
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, Code::unsupported);
    EXPECT_EQ(refused.error().detail, 1u);
    EXPECT_FALSE(*store.open_map(name)->get("k")) << "nothing of it was done";
  }
  EXPECT_TRUE(writing_->transact(Transaction().put("other", "k", "1")));
  EXPECT_EQ((*store.open_map("other")->get("k"))->value, "1");
}

INSTANTIATE_TEST_SUITE_P(Ways, GroupsConcurrency,
                         ::testing::Values("unix", "shm_one_sided", "roce_one_sided", "device",
                                           "datagram", "in_network"),
                         way_name);

}  // namespace
}  // namespace espalier::test
