// SPDX-License-Identifier: Apache-2.0
// Transactions that are repeated after a lost connection or a killed node: the sum of all accounts
// is constant, and each client knows what it has done.
//
// A transfer has conditions, so a second execution fails them. Then its client would be wrong about
// a transfer that was done, and its own account would differ.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "channel/channel.hpp"
#include "client/numbered_transactions.hpp"
#include "client/store_impl.hpp"
#include "espalier/hash_map.hpp"
#include "espalier/transaction.hpp"
#include "tests/support/child.hpp"
#include "tests/support/forked_node.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kAccountCount = 6;
constexpr std::uint64_t kMoneyEach = 100;
constexpr std::uint64_t kHangsNs = 60'000'000'000;  // only a machine that hangs takes so long

std::string name_of_account(std::uint64_t number) { return "account" + std::to_string(number); }

/// A client that transfers money between all accounts, and counts its own transfers in an account
/// of its own.
class MoneyClient {
 public:
  MoneyClient(std::uint64_t number, std::uint64_t seed)
      : name_("done" + std::to_string(number)), random_(seed) {}

  /// Reads two accounts, then moves 1 from one to the other on the condition that both are
  /// unchanged. `transact` returns an answer, and is repeated until it has one. Returns what is
  /// wrong.
  template <class Transact>
  std::string move(const Transact& transact) {
    const std::string from = name_of_account(random_.below(kAccountCount));
    const std::string to = name_of_account(random_.below(kAccountCount));
    if (from == to) return {};
    Transaction reads;
    reads.get("default", from).get("default", to);
    const auto read = transact(reads);
    if (!read) return "read: " + message(read.error());
    if (!read->found_is_known || !read->found[0] || !read->found[1]) return "an account is gone";
    const std::string& has = read->found[0]->value;
    const std::string& gets = read->found[1]->value;
    if (has == "0") return {};
    Transaction moves;
    moves.only_if_value("default", from, has).only_if_value("default", to, gets);
    moves.put("default", from, std::to_string(std::stoull(has) - 1));
    moves.put("default", to, std::to_string(std::stoull(gets) + 1));
    moves.put("hash", name_, std::to_string(done_ + 1));
    const auto moved = transact(moves);
    if (moved) {
      ++done_;
    } else if (moved.error().code != Code::condition_failed) {
      return "move: " + message(moved.error());
    }
    return {};
  }
  /// Whether the store has what it has done.
  template <class Transact>
  std::string check(const Transact& transact) {
    Transaction reads;
    reads.get("hash", name_);
    const auto read = transact(reads);
    if (!read) return "check: " + message(read.error());
    const std::string there = read->found[0] ? read->found[0]->value : "0";
    if (there == std::to_string(done_)) return {};
    return name_ + " has done " + std::to_string(done_) + ", and the store says " + there;
  }
  [[nodiscard]] std::uint64_t done() const { return done_; }

 private:
  const std::string name_;
  base::Random random_;
  std::uint64_t done_ = 0;
};

Result<void> open_accounts(Store& store) {
  if (const auto made = store.create_hash_map("hash"); !made) return fail(made.error().code);
  Transaction all;
  for (std::uint64_t i = 0; i < kAccountCount; ++i) {
    all.put("default", name_of_account(i), std::to_string(kMoneyEach));
  }
  const auto done = store.transact(all);
  return done ? Result<void>() : std::unexpected(done.error());
}

std::uint64_t money_of(Store& store) {
  Transaction all;
  for (std::uint64_t i = 0; i < kAccountCount; ++i) all.get("default", name_of_account(i));
  const auto read = store.transact(all);
  std::uint64_t money = 0;
  if (!read) return money;
  for (const auto& found : read->found) money += found ? std::stoull(found->value) : 0;
  return money;
}

// --- connections that are lost -------------------------------------------------------------------

/// Loses requests before they arrive, and answers, by a seed; a lost request may still arrive
/// later.
class LossyChannel final : public channel::Channel {
 public:
  LossyChannel(std::shared_ptr<channel::Channel> good, std::uint64_t seed)
      : Channel(nullptr), good_(std::move(good)), random_(seed) {}

  std::expected<channel::Answer, channel::Refusal> ask(
      const wire::CallMessage& request, std::optional<channel::NodeNumber> node) override {
    if (random_.below(6) == 0) {
      late_.emplace_back(request);
      return lost();
    }
    auto answer = good_->ask(request, node);
    if (!late_.empty() && random_.below(2) == 0) {
      const Late late = std::move(late_.back());
      late_.pop_back();
      ++came_late_;
      static_cast<void>(good_->ask(late.message(), node));
    }
    if (random_.below(6) == 0) return lost();
    return answer;
  }
  std::expected<void, channel::Refusal> make(const wire::CallMessage& request,
                                             const wire::CallMessage& undo,
                                             const channel::TakeAnswer& take) override {
    return good_->make(request, undo, take);
  }
  [[nodiscard]] std::uint64_t came_late() const { return came_late_; }
  [[nodiscard]] std::uint64_t lost_ones() const { return lost_; }

 private:
  struct Late {
    explicit Late(const wire::CallMessage& request)
        : copy(request), payload(request.payload), more(request.more_payload) {}
    [[nodiscard]] wire::CallMessage message() const {
      wire::CallMessage made = copy;
      made.key = {};
      made.payload = payload;
      made.more_payload = more;
      return made;
    }
    wire::CallMessage copy;
    std::string payload;
    std::string more;
  };
  std::unexpected<channel::Refusal> lost() {
    ++lost_;
    return std::unexpected(channel::Refusal(Error{Code::connection_lost}));
  }

  const std::shared_ptr<channel::Channel> good_;
  base::Random random_;
  std::vector<Late> late_;
  std::uint64_t came_late_ = 0;
  std::uint64_t lost_ = 0;
};

class NumberedOverLostConnections : public NodeFixture {
 protected:
  NumberedOverLostConnections() { config_.node.shared_clock = true; }
};

// Of a node without a data folder.
TEST_F(NumberedOverLostConnections, AStoresOwnTransactionsAreDoneOnce) {
  start();
  Store store = connect();
  ASSERT_TRUE(open_accounts(store));
  const std::uint64_t seed = base::seed_from_environment(42);
  LossyChannel channel(client::StoreImpl::of(store).channel(), seed);
  client::OwnNumbers numbers;
  MoneyClient money(0, seed);
  const auto transact = [&](const Transaction& transaction) {
    const auto asked = client::bytes_of(transaction);
    return client::transact_with_own_number(channel, numbers, *asked);
  };
  for (int i = 0; i < 150; ++i) ASSERT_EQ(money.move(transact), "") << "seed " << seed;
  EXPECT_EQ(money.check(transact), "") << "seed " << seed;
  EXPECT_EQ(money_of(store), kAccountCount * kMoneyEach);
  EXPECT_GT(channel.came_late(), 0u);
  EXPECT_GT(channel.lost_ones(), 20u);
}

TEST_F(NumberedOverLostConnections, AProgramAsksByItsOwnNumbers) {
  start();
  Store store = connect();
  ASSERT_TRUE(open_accounts(store));
  auto client = store.make_numbered_client();
  ASSERT_TRUE(client) << message(client.error());
  const std::uint64_t seed = base::seed_from_environment(43);
  LossyChannel channel(client::StoreImpl::of(store).channel(), seed);
  MoneyClient money(0, seed);
  const auto transact = [&](const Transaction& transaction) {
    auto done = client::transact_numbered(channel, *client::bytes_of(transaction), *client);
    ++client->next;
    return done;
  };
  for (int i = 0; i < 60; ++i) ASSERT_EQ(money.move(transact), "") << "seed " << seed;
  EXPECT_EQ(money.check(transact), "") << "seed " << seed;
  // The program is started again, and does not know whether its last one was done.
  Transaction last;
  last.get("default", "new").put("default", "new", "1");
  const NumberedClient before = *client;
  const auto first = store.transact(last, *client);
  ASSERT_TRUE(first) << message(first.error());
  EXPECT_EQ(client->next, before.next + 1);
  Store later = connect();
  NumberedClient again = before;
  const auto second = later.transact(last, again);
  ASSERT_TRUE(second) << message(second.error());
  EXPECT_EQ(second->version, first->version);
  ASSERT_EQ(second->found.size(), 1u);
  EXPECT_FALSE(second->found[0]) << "it is what was read then";
  Transaction other;
  other.put("default", "new", "2");
  again = before;
  EXPECT_EQ(later.transact(other, again).error().code, Code::already_exists);
  EXPECT_EQ(again.next, before.next);
  ASSERT_TRUE(later.forget_numbered_client(*client));
  EXPECT_EQ(later.transact(other, *client).error().code, Code::outdated);
}

TEST(NumberedEmbedded, AStoreOfThisProcessHasNumbersToo) {
  auto store = Store::open({.memory_bytes_max = std::uint64_t{64} << 20, .huge_pages = false});
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->create_map("m"));
  auto client = store->make_numbered_client();
  ASSERT_TRUE(client);
  Transaction once;
  once.get("m", "k").only_if_absent("m", "k").put("m", "k", "1");
  NumberedClient again = *client;
  const auto first = store->transact(once, *client);
  ASSERT_TRUE(first) << message(first.error());
  const auto second = store->transact(once, again);
  ASSERT_TRUE(second) << message(second.error());
  EXPECT_EQ(second->version, first->version);
  EXPECT_FALSE(second->found[0]);
  EXPECT_EQ(again.next, 2u);
  EXPECT_EQ(store->transact(once, again).error(), (Error{Code::condition_failed, 0, 1}));
  EXPECT_EQ(again.next, 3u);
  ASSERT_TRUE(store->forget_numbered_client(again));
  EXPECT_EQ(store->transact(once, again).error().code, Code::outdated);
}

// --- nodes that are killed -----------------------------------------------------------------------

const std::string kHalfway = "halfway";

/// Retries until the node answers: it may be down for a while.
class PatientStore {
 public:
  explicit PatientStore(std::string address) : address_(std::move(address)) {}

  Result<Transacted> transact(const Transaction& transaction, NumberedClient& client) {
    for (const base::Stopwatch watch;;) {
      Result<Transacted> done = fail(Code::connection_lost);
      if (connect()) done = store_->transact(transaction, client);
      if (done || watch.elapsed_ns() > kHangsNs) return done;
      const Code code = done.error().code;
      if (code != Code::connection_lost && code != Code::system && code != Code::busy) return done;
      if (code != Code::busy) store_.reset();
    }
  }
  Result<NumberedClient> make() {
    for (const base::Stopwatch watch;;) {
      Result<NumberedClient> made = fail(Code::connection_lost);
      if (connect()) made = store_->make_numbered_client();
      if (made || watch.elapsed_ns() > kHangsNs) return made;
      store_.reset();
    }
  }

 private:
  bool connect() {
    if (store_) return true;
    auto connected = Store::connect(address_);
    if (!connected) {
      std::this_thread::yield();
      return false;
    }
    store_ = std::make_unique<Store>(std::move(*connected));
    return true;
  }

  const std::string address_;
  std::unique_ptr<Store> store_;
};

/// Moves money until it is stopped; reports after as many moves as requested.
int move_some_money(Line& line, const std::string& address, std::uint64_t number,
                    std::uint64_t seed) {
  std::string order;
  if (!line.receive(order)) return 1;
  PatientStore store(address);
  auto client = store.make();
  if (!client) return line.send("no client: " + message(client.error())), 1;
  MoneyClient money(number, seed);
  const auto transact = [&](const Transaction& transaction) {
    return store.transact(transaction, *client);
  };
  do {
    const std::uint64_t moves = std::stoull(order);
    std::string wrong;
    for (std::uint64_t i = 0; i < moves && wrong.empty(); ++i) {
      if (i == moves / 2) line.send(kHalfway);
      wrong = money.move(transact);
    }
    if (wrong.empty()) wrong = money.check(transact);
    line.send(wrong.empty() ? "good " + std::to_string(money.done()) : wrong);
  } while (line.receive(order));
  return 0;
}

class NumberedKilledNodeConcurrency : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kClients = 2;

  NumberedKilledNodeConcurrency() {
    config_ = node_config(folder_, 2);
    config_.data.dir = (folder_ / "data").string();
    config_.node.shared_clock = true;
    options_.segment_bytes = std::uint64_t{1} << 20;
    config_.data.checkpoint_log_bytes = std::uint64_t{1} << 18;  // checkpoints all the time
    const std::string address = "unix:" + config_.node.socket;
    for (std::uint64_t i = 0; i < kClients; ++i) {
      clients_.emplace_back([i, address, seed = random_()](Line& line) {
        return move_some_money(line, address, i, seed);
      });
    }
  }

  base::Random random_{base::seed_from_environment(44)};
  base::TemporaryFolder folder_;
  node::Config config_;
  node::NodeOptions options_;
  std::vector<Child> clients_;  // forked while this process has one thread
};

// At moments that the seed chooses: clients are in the middle of their transfers.
TEST_F(NumberedKilledNodeConcurrency, MoneyIsConstantAndNothingIsDoneTwice) {
  auto node = std::make_unique<ForkedNode>(config_, options_);
  {
    Child opener([&](Line&) {
      auto store = Store::connect("unix:" + config_.node.socket);
      return store && open_accounts(*store) ? 0 : 1;
    });
    ASSERT_EQ(opener.wait(), 0);
  }
  std::string said;
  for (int round = 0; round < 6; ++round) {
    const std::uint64_t moves = 10 + random_.below(60);
    for (Child& client : clients_) ASSERT_TRUE(client.line().send(std::to_string(moves)));
    ASSERT_TRUE(clients_[random_.below(kClients)].line().receive(said));
    ASSERT_EQ(said, kHalfway);
    node.reset();  // kills it
    node = std::make_unique<ForkedNode>(config_, options_);
    for (Child& client : clients_) {
      do {
        ASSERT_TRUE(client.line().receive(said));
      } while (said == kHalfway);
      ASSERT_EQ(said.substr(0, 4), "good") << "round " << round << ": " << said;
    }
  }
  {
    Child counter([&](Line&) {
      auto store = Store::connect("unix:" + config_.node.socket);
      return store && money_of(*store) == kAccountCount * kMoneyEach ? 0 : 1;
    });
    EXPECT_EQ(counter.wait(), 0) << "the money is not what it was";
  }
  for (Child& client : clients_) {
    client.kill();
    client.wait();
  }
  EXPECT_EQ(node->stop(), "");
}

}  // namespace
}  // namespace espalier::test
