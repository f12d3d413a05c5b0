// SPDX-License-Identifier: Apache-2.0
// Three nodes: an offload of one reads a word of a region at the second, writes it to a region at
// the third, and answers its client; and what happens when a region is dropped meanwhile.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "channel/objects.hpp"
#include "client/store_impl.hpp"
#include "espalier/region.hpp"
#include "kinds/region/region_object.hpp"
#include "node/node.hpp"
#include "tests/regions/region_copy.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::test {
namespace {

using region_copy_calls::Copied;
using region_copy_calls::CopyWord;

constexpr std::uint64_t kCopyTimeoutNs =
    120'000'000'000;  // only a machine that hangs takes so long
constexpr std::uint64_t kWordsBytes = 4096;

/// Nodes a, b and c, of which a has the others for peers, and a region at each of those.
class RegionPeers : public ::testing::Test {
 protected:
  explicit RegionPeers(std::string way = "shm") : way_(std::move(way)) {}

  struct OneNode {
    node::Config config;
    std::unique_ptr<node::Node> node;
    std::optional<Store> store;
  };
  void start(const std::string& name, OneNode& one) {
    one.config = node_config(folder_);
    one.config.node.socket = (folder_ / (name + ".socket")).string();
    if (name != "a") {
      one.config.node.fabric =
          way_ == "shm" ? "shm:" + (folder_ / name).string() : "roce://127.0.0.1:0/1";
      one.config.clients.secrets = secrets_;
    } else {
      one.config.peers = {{"b", b_.config.node.fabric, secrets_},
                          {"c", c_.config.node.fabric, secrets_}};
    }
    node::NodeOptions options;
    options.own_kinds = {&region_copy_kind(), 1};
    auto node = node::Node::start(one.config, options);
    ASSERT_TRUE(node) << message(node.error());
    one.node = std::move(*node);
    if (name != "a") one.config.node.fabric = one.node->fabric_addresses().front();
    auto store = Store::connect("unix:" + one.config.node.socket);
    ASSERT_TRUE(store) << message(store.error());
    one.store.emplace(std::move(*store));
  }
  void start_all() {
    start("b", b_);
    start("c", c_);
    start("a", a_);
    ASSERT_FALSE(HasFatalFailure());
    for (OneNode* const one : {&b_, &c_}) {
      const auto made = one->store->create_region(kWordsRegion, kWordsBytes);
      ASSERT_TRUE(made) << message(made.error());
    }
  }
  /// Secrets of one role, for all nodes.
  void ask_for_secrets(const std::string& role) {
    secrets_ = (folder_ / "peers.secret").string();
    std::ofstream(secrets_) << "a " << role << " 0" << std::string(62, 'a') << "0\n";
    ASSERT_EQ(::chmod(secrets_.c_str(), 0600), 0);
  }
  [[nodiscard]] Result<Copied> copy(std::uint64_t from, std::uint64_t to) const {
    return channel::ask(*client::StoreImpl::of(*a_.store).channel(), CopyWord{from, to});
  }
  /// Until the links are there.
  [[nodiscard]] Result<Copied> copy_at_last(std::uint64_t from, std::uint64_t to) const {
    const base::Stopwatch watch;
    for (;;) {
      const auto copied = copy(from, to);
      const bool gone = !copied && copied.error().code == Code::connection_lost;
      if (!gone || watch.elapsed_ns() > kCopyTimeoutNs) return copied;
      std::this_thread::yield();
    }
  }
  [[nodiscard]] static std::shared_ptr<region::RegionObject> words_of(const OneNode& one) {
    return one.node->catalog().open<region::RegionObject>(kWordsRegion).value();
  }
  static std::uint64_t word_at(const region::RegionObject& of, std::uint64_t offset) {
    std::uint64_t word = 0;
    EXPECT_TRUE(of.read(offset, std::as_writable_bytes(std::span(&word, 1))));
    return word;
  }
  static void set_word(region::RegionObject& of, std::uint64_t offset, std::uint64_t word) {
    EXPECT_TRUE(of.write(offset, std::as_bytes(std::span(&word, 1))));
  }

  const base::TemporaryFolder folder_;
  const std::string way_;
  std::string secrets_;
  OneNode b_;
  OneNode c_;
  OneNode a_;  // ends first
};

class RegionPeersOverEachWay : public RegionPeers,
                               public ::testing::WithParamInterface<const char*> {
 protected:
  RegionPeersOverEachWay() : RegionPeers(GetParam()) {}
};

TEST_P(RegionPeersOverEachWay, AWordOfARegionIsReadAtOneAndWrittenToTheOther) {
  start_all();
  ASSERT_FALSE(HasFatalFailure());
  const auto from_region = words_of(b_);
  const auto to_region = words_of(c_);
  base::Random random(base::seed_from_environment(39));
  for (int round = 0; round < 50; ++round) {
    const std::uint64_t from = random.below(kWordsBytes / 8) * 8;
    const std::uint64_t to = random.below(kWordsBytes / 8) * 8;
    const std::uint64_t word = random();
    set_word(*from_region, from, word);
    const auto copied = copy_at_last(from, to);
    ASSERT_TRUE(copied) << message(copied.error());
    EXPECT_EQ(copied->word, word);
    EXPECT_EQ(word_at(*to_region, to), word);
  }
  EXPECT_EQ(to_region->keys(), 1u) << "one worker has one session, and a session one key";
  for (const std::uint64_t far : {kWordsBytes, kWordsBytes - 4, ~std::uint64_t{7}}) {
    for (const auto& refused : {copy(far, 0), copy(0, far)}) {
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, Code::invalid_argument);
    }
  }
  EXPECT_TRUE(copy(0, 0)) << "the link has ended";
}

// Where keys are checked at the node, no byte changes from then on. Over shm the peer stores by
// itself: a store that was about to happen when its key was revoked is refused, and the bytes are
// unused.
TEST_P(RegionPeersOverEachWay, NoWriteIsDoneOnceADropWasAcknowledged) {
  start_all();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(copy_at_last(0, 0));
  const auto from_region = words_of(b_);
  for (int round = 0; round < 5; ++round) {
    const auto to_region = words_of(c_);
    // The bytes in memory, independent of access rights.
    const auto table = *fabric::RegionTable::create();
    const auto look = to_region->offer(*table, fabric::RemoteRights::read, 0);
    ASSERT_TRUE(look);
    fabric::RegionTable::Reader reader(*table);
    reader.enter();
    const std::byte* const bytes =
        reader.find(look->remote().key, look->remote().base, 8, fabric::RemoteRights::read, 0);
    reader.leave();
    ASSERT_NE(bytes, nullptr);
    std::atomic<std::uint64_t> copies{0};
    std::atomic<bool> acknowledged{false};
    std::atomic<int> late{0};
    {
      const std::jthread copying([&] {
        for (std::uint64_t word = 1;; ++word) {
          set_word(*from_region, 0, word);
          const bool before = acknowledged;
          const auto copied = copy(0, 0);
          if (copied) ++copies;
          if (before && copied) ++late;
          if (before) return;
        }
      });
      const base::Stopwatch watch;
      while (copies < 5 && watch.elapsed_ns() < kCopyTimeoutNs) std::this_thread::yield();
      const auto dropped = c_.store->drop_region(kWordsRegion);
      EXPECT_TRUE(dropped);
      const auto last = base::load_shared<std::uint64_t>(bytes);
      acknowledged = true;
      for (int more = 0; more < 20; ++more) EXPECT_FALSE(copy(0, 0));
      if (way_ != "shm") {
        EXPECT_EQ(base::load_shared<std::uint64_t>(bytes), last);
      }
    }
    EXPECT_EQ(late, 0);
    // Until another one exists, the peers report that.
    const auto none = copy_at_last(0, 0);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::not_found);
    ASSERT_TRUE(c_.store->create_region(kWordsRegion, kWordsBytes));
    EXPECT_EQ(word_at(*words_of(c_), 0), 0u);
    const auto again = copy_at_last(0, 0);
    ASSERT_TRUE(again) << message(again.error());
    EXPECT_EQ(word_at(*words_of(c_), 0), again->word);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, RegionPeersOverEachWay, ::testing::Values("shm", "roce"),
                         [](const auto& each) { return std::string(each.param); });

class RegionPeersWithRoles : public RegionPeers {
 protected:
  RegionPeersWithRoles() : RegionPeers("roce") {}
};

TEST_F(RegionPeersWithRoles, APeerMayUseRegions) {
  ask_for_secrets("peer");
  start_all();
  ASSERT_FALSE(HasFatalFailure());
  set_word(*words_of(b_), 8, 77);
  const auto copied = copy_at_last(8, 16);
  ASSERT_TRUE(copied) << message(copied.error());
  EXPECT_EQ(word_at(*words_of(c_), 16), 77u);
}

TEST_F(RegionPeersWithRoles, NoOtherRoleMay) {
  for (const char* const role : {"read", "write", "admin"}) {
    SCOPED_TRACE(role);
    a_ = OneNode();
    b_ = OneNode();
    c_ = OneNode();
    ask_for_secrets(role);
    start_all();
    ASSERT_FALSE(HasFatalFailure());
    const auto refused = copy_at_last(0, 0);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::not_permitted);
    EXPECT_EQ(words_of(b_)->keys() + words_of(c_)->keys(), 0u);
  }
}

}  // namespace
}  // namespace espalier::test
