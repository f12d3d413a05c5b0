// SPDX-License-Identifier: Apache-2.0
// Two nodes in a chain that an etcd of the test's own keeps, and a client that knows etcd's address
// alone. The members are killed, stopped and replaced by one that the client has never heard of.
#include <signal.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "chain/membership/testing/own_etcd.hpp"
#include "espalier/transaction.hpp"
#include "tests/chains/chain_of_two.hpp"

namespace espalier::test {
namespace {

class ChainInEtcdConcurrency : public ChainOfTwo {
 protected:
  void SetUp() override {
    ASSERT_TRUE(etcd_.answers())
        << "Is etcd installed? scripts/install-packages.sh --tests does it.";
    ChainOfTwo::SetUp();
  }
  [[nodiscard]] std::string kept_at() const override {
    return "etcd://" + etcd_.endpoint() + "/espalier/two";
  }
  [[nodiscard]] std::string address() const override { return "chain://" + kept_at(); }
  void open_default() {
    auto store = connect_to_chain();
    ASSERT_TRUE(store) << message(store.error());
    store_ = std::make_unique<Store>(std::move(*store));
    auto map = until_done([&] { return store_->open_map("default"); });
    ASSERT_TRUE(map) << message(map.error());
    map_ = std::make_unique<Map>(std::move(*map));
  }
  void put_some(int count) {
    for (int i = 0; i < count; ++i, ++puts_) {
      const std::string number = std::to_string(puts_);
      const auto done = until_done([&] { return map_->put("key" + number, "value" + number); });
      ASSERT_TRUE(done) << number << ": " << message(done.error());
    }
  }
  void expect_all() {
    for (int i = 0; i < puts_; ++i) {
      const std::string number = std::to_string(i);
      const auto found = until_done([&] { return value(*map_, "key" + number); });
      ASSERT_TRUE(found) << i << ": " << message(found.error());
      EXPECT_EQ(*found, "value" + number);
    }
  }
  /// Writes until the chain has so many members.
  void put_until_members(std::size_t members) {
    const base::Stopwatch watch;
    for (;;) {
      const auto view = membership()->read();
      ASSERT_TRUE(view && *view);
      if ((*view)->members.size() == members) return;
      ASSERT_LT(watch.elapsed_ns(), kSoonNs) << print(**view);
      put_some(5);
    }
  }
  void end_member(std::size_t place) {
    members_[place].kill();
    members_[place].wait();
  }

  chain::OwnEtcd etcd_{folder_};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Map> map_;
  int puts_ = 0;
};

TEST_F(ChainInEtcdConcurrency, AClientFindsTheHeadAndGoesOnWhenItIsKilled) {
  open_default();
  put_some(100);
  end_member(0);
  put_some(100);
  expect_all();
}

// A count over one key: each transaction is on the condition that the one before was done once.
TEST_F(ChainInEtcdConcurrency, NothingIsDoneTwiceWhenTheHeadIsKilled) {
  open_default();
  constexpr int kTransactions = 200;
  std::atomic<int> done{0};
  std::string wrong;
  std::thread worker([&] {
    for (int i = 0; i < kTransactions && wrong.empty(); ++i) {
      Transaction next;
      next.put("default", "count", std::to_string(i + 1));
      if (i == 0) {
        next.only_if_absent("default", "count");
      } else {
        next.only_if_value("default", "count", std::to_string(i));
      }
      const auto transacted = store_->transact(next);
      if (!transacted) wrong = std::to_string(i) + ": " + message(transacted.error());
      done = i + 1;
    }
    done = kTransactions;
  });
  for (const base::Stopwatch watch; done < kTransactions / 2 && watch.elapsed_ns() < kSoonNs;) {
    ::poll(nullptr, 0, 1);
  }
  end_member(0);
  worker.join();
  EXPECT_EQ(wrong, "");
  const auto count = until_done([&] { return value(*map_, "count"); });
  ASSERT_TRUE(count) << message(count.error());
  EXPECT_EQ(*count, std::to_string(kTransactions));
}

// The client connects while the chain is `a` alone, so `b`, which joins later, is no node that it
// knows.
TEST_F(ChainInEtcdConcurrency, AMemberThatJoinedLaterIsFoundOnceTheKnownOnesAreGone) {
  end_member(1);
  for (const base::Stopwatch watch;;) {
    const auto view = membership()->read();
    ASSERT_TRUE(view && *view);
    if ((*view)->members.size() == 1) break;
    ASSERT_LT(watch.elapsed_ns(), kSoonNs);
    ::poll(nullptr, 0, 10);
  }
  open_default();
  put_some(20);
  for (bool added = false; !added;) {
    const auto view = membership()->read();
    ASSERT_TRUE(view && *view);
    const auto taken = membership()->replace(
        (*view)->with_joining("b", "shm:" + (folder_ / "b").string(), "unix:" + socket_of("b")));
    ASSERT_TRUE(taken) << taken.error();
    added = *taken;
  }
  begin("b");
  put_until_members(2);
  end_member(0);
  put_some(20);
  expect_all();
}

// Clients that have found their head do without etcd; new ones say what is missing.
TEST_F(ChainInEtcdConcurrency, AClientGoesOnWhileEtcdIsStopped) {
  open_default();
  put_some(20);
  ASSERT_TRUE(etcd_.stop());
  put_some(20);
  expect_all();
  const auto other = Store::connect(address());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error(), (Error{Code::no_chain, 0, 1})) << message(other.error());
  ::kill(etcd_.process(), SIGCONT);
  put_some(20);
  expect_all();
}

TEST_F(ChainInEtcdConcurrency, AnEndpointThatIsDownIsPassedOver) {
  const std::string down = "127.0.0.1:" + std::to_string(chain::free_ports(1)[0]);
  const std::string both = "chain://etcd://" + down + "," + etcd_.endpoint() + "/espalier/two";
  const auto store = until_done([&] { return Store::connect(both); });
  ASSERT_TRUE(store) << message(store.error());
  const auto wrong = Store::connect("chain://etcd://" + etcd_.endpoint() + "/espalier/three");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error(), (Error{Code::no_chain, 0, 5})) << message(wrong.error());
}

}  // namespace
}  // namespace espalier::test
