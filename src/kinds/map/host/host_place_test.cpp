// SPDX-License-Identifier: Apache-2.0
// Writes that find no memory while a reader elsewhere holds some: its lease is played by hand.
#include "kinds/map/host/host_place.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kinds/map/testing/tree_fixture.hpp"

namespace espalier::tree {
namespace {

/// A small store that is nearly full, and a lease on it that holds all that was unlinked since.
class LeasedStore : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = std::uint64_t{8} << 20;

  LeasedStore() : tree_({.node_bytes = 8192}, kBytes) {}

  std::string random_key() {
    std::string key(16, 0);
    for (char& letter : key) letter = static_cast<char>(random_.below(256));
    return key;
  }

  /// Puts random keys until there is no memory for more.
  void fill(std::size_t value_bytes) {
    const std::string value(value_bytes, 'v');
    for (;;) {
      keys_.push_back(random_key());
      if (!tree_.put(keys_.back(), value).ok) break;
    }
    keys_.pop_back();
    for (std::size_t i = keys_.size(); i > 1; --i) {
      std::swap(keys_[random_.below(i)], keys_[i - 1]);
    }
  }

  void take_lease() { lease_ = leases().grant(1, 0); }
  /// Plays a reader with short walks: renews the lease with the epoch of its last renewal.
  void renew_twice() {
    for (int i = 0; i < 2; ++i) {
      const auto epoch = leases().renew(lease_.id, lease_.epoch, 0);
      ASSERT_TRUE(epoch);
      lease_.epoch = *epoch;
    }
  }
  base::LeaseTable& leases() { return tree_.store().leases; }

  /// Runs a write to its end. Whenever it has asked `leased_wait` times for what leases hold,
  /// `let_go` is called.
  template <class LetGo>
  Completion write(Op op, const std::string& key, std::string_view value, std::uint64_t leased_wait,
                   const LetGo& let_go) {
    constexpr bool kNever = false;
    HostExecutor<HostAccess> executor(
        tree_.context(), tree_.map(), 1, [&](std::uint32_t, base::ReadyQueue& queue) {
          return HostAccess(tree_.map().base, queue, true, &kNever);  // others run meanwhile
        });
    OneAnswer answer;
    const Request request = TreeFixture::request(op, key, value);
    executor.submit({&request, 1}, answer);
    std::uint64_t heard = leases().sweeps_asked();
    while (executor.advance() != 0) {
      if (leases().sweeps_asked() - heard < leased_wait) continue;
      heard = leases().sweeps_asked();
      ++asked_;
      let_go();
    }
    return answer.completion;
  }

  base::Random random_{16};
  TreeFixture tree_;
  std::vector<std::string> keys_;
  base::LeaseTable::Granted lease_;
  std::uint64_t asked_ = 0;
};

// More tries than an erase has that waits for nothing: each erase asks at most twice.
constexpr std::uint64_t kManyTries = 150;
constexpr std::uint64_t kEnough = 5;  // writes that had to wait

TEST_F(LeasedStore, ErasesWaitForALeaseToBeRenewed) {
  fill(16);
  take_lease();
  for (const std::string& key : keys_) {
    const Completion erased = write(Op::erase, key, {}, kManyTries, [this] { renew_twice(); });
    ASSERT_TRUE(erased.ok) << message(erased.error);
    ASSERT_TRUE(erased.applied);
    if (asked_ == kEnough) break;
  }
  EXPECT_GT(asked_, 0u) << "the lease never stood in the way";
  leases().end(lease_.id);
}

// The reader has gone, or scans slowly: its lease is reported to the reclaimer.
TEST_F(LeasedStore, ErasesHaveALeaseEndedThatIsNotRenewed) {
  fill(16);
  take_lease();
  bool ended = false;
  for (const std::string& key : keys_) {
    const Completion erased = write(Op::erase, key, {}, 1, [&] {
      if (leases().overdue(0, leases().end_below()).empty()) return;
      leases().end(lease_.id);
      ended = true;
    });
    ASSERT_TRUE(erased.ok) << message(erased.error);
  }
  EXPECT_TRUE(ended);
}

TEST_F(LeasedStore, PutsWaitForALeaseToBeRenewed) {
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{3000}}) {  // in a leaf, and not
    keys_.clear();
    fill(bytes);
    std::ranges::sort(keys_);  // neighbours, so that whole leaves become free
    for (std::size_t i = keys_.size() / 3; i != 0; --i) {
      tree_.erase(keys_.back());
      keys_.pop_back();
    }
    asked_ = 0;
    take_lease();
    for (int round = 0; round < 3; ++round) {
      for (const std::string& key : keys_) {
        const Completion put =
            write(Op::put, key, std::string(bytes, 'w'), 4, [this] { renew_twice(); });
        ASSERT_TRUE(put.ok) << message(put.error);
        if (asked_ == kEnough) break;
      }
    }
    EXPECT_GT(asked_, 0u) << "the lease never stood in the way";
    leases().end(lease_.id);
    for (const std::string& key : keys_) tree_.erase(key);
  }
}

TEST_F(LeasedStore, PutsDoNotWaitForALeaseForEver) {
  fill(16);
  take_lease();
  bool refused = false;
  for (std::size_t i = 0; i < keys_.size() && !refused; ++i) {
    const Completion put = write(Op::put, keys_[i], "sixteen letters.", 1, [] {});
    refused = !put.ok;
    EXPECT_EQ(put.error.code, refused ? Code::out_of_memory : Code::invalid);
  }
  EXPECT_TRUE(refused);
  EXPECT_EQ(leases().end_below(), 0u) << "for a put no lease is ended that holds little";
  leases().end(lease_.id);
}

}  // namespace
}  // namespace espalier::tree
