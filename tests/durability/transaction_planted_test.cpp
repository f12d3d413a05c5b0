// SPDX-License-Identifier: Apache-2.0
// The rules of transactions: each is broken in turn, and the checks detect it.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/testing/recording_sink.hpp"
#include "engine/redo_target.hpp"
#include "engine/services.hpp"
#include "store/planted_store_bugs.hpp"
#include "tests/durability/numbered_store.hpp"

namespace espalier::test {
namespace {

/// What is wrong, in words; empty: nothing.
std::string seen_between() {
  TransactionStore f;
  EXPECT_TRUE(
      f.transact({{"map_a", StepKind::put, "k", "1"}, {"hash_a", StepKind::put, "k", "1"}}));
  std::string wrong;
  store::on_moment = [&](store::Moment) {
    const std::string both = f.get("map_a", "k").value() + f.get("hash_a", "k").value();
    if (both == "21" || both == "12") wrong = "a reader has seen " + both;
  };
  EXPECT_TRUE(
      f.transact({{"map_a", StepKind::put, "k", "2"}, {"hash_a", StepKind::put, "k", "2"}}));
  store::on_moment = nullptr;
  return wrong;
}

std::string written_between() {
  TransactionStore f;
  EXPECT_TRUE(f.transact({{"map_a", StepKind::put, "k", "1"}}));
  bool done = false;
  store::on_moment = [&](store::Moment) {
    if (std::exchange(done, true)) return;
    EXPECT_TRUE(f.begin({{"map_a", StepKind::put, "k", "other"}}));
  };
  const auto last = f.transact({{"map_a", StepKind::check, "k", "1", ConditionKind::value},
                                {"map_a", StepKind::put, "k", "2"},
                                {"hash_a", StepKind::put, "k", "2"}});
  store::on_moment = nullptr;
  EXPECT_TRUE(last);
  const bool lost = done && !last->failed_step;
  return lost ? "a write was lost that came after the condition was looked at" : "";
}

// A client's number is done, the process ends, and the client repeats it, as if it had got no
// answer.
std::string money_after_restart() {
  catalog::RecordingSink sink;
  NumberedStore before;
  before.core.catalog.record_to(&sink);
  const std::uint64_t client = before.make();
  const std::vector<NamedStep> deposit{{"map_a", StepKind::put, "last", "deposit"},
                                       {"hash_a", StepKind::put, "money", "10"}};
  before.ask({client, 1, 0}, deposit);
  before.core.catalog.record_to(nullptr);
  NumberedStore behind;
  offload::Services services(behind.core, std::uint64_t{64} << 20);
  offload::RedoTarget target(services, {});
  for (const std::string_view record : sink.records()) EXPECT_TRUE(target.apply(record));
  const std::uint64_t taken = behind.clock().taken();
  behind.ask({client, 1, 0}, deposit);
  return behind.clock().taken() == taken ? "" : "a request was done twice, before and after";
}

std::string asked_by_a_forgotten_client() {
  NumberedStore f;
  const std::uint64_t client = f.make();
  const std::vector<NamedStep> deposit{{"map_a", StepKind::put, "money", "10"}};
  f.ask({client, 1, 0}, deposit);
  EXPECT_TRUE(f.clients().forget(client, {}, nullptr));
  const std::uint64_t taken = f.clock().taken();
  f.ask({client, 1, 0}, deposit);
  return f.clock().taken() == taken ? "" : "a request of a client that was forgotten was done";
}

void expect_noticed_by(store::Bug bug, const std::function<std::string()>& check) {
  ASSERT_EQ(check(), "") << "without a bug";
  const base::Planted planted(bug);
  const std::string wrong = check();
  EXPECT_NE(wrong, "") << "the bug was not noticed";
  ::testing::Test::RecordProperty("rejected_because", wrong);
}

TEST(TransactionsPlanted, OneObjectOfTwoThatIsVisibleFirstIsNoticed) {
  expect_noticed_by(store::Bug::one_object_first, seen_between);
}

TEST(TransactionsPlanted, AConditionThatIsReadBeforeTheLockIsNoticed) {
  expect_noticed_by(store::Bug::checked_unlocked, written_between);
}

TEST(TransactionsPlanted, ARequestThatIsDoneTwiceOverARestartIsNoticed) {
  expect_noticed_by(store::Bug::numbers_not_recovered, money_after_restart);
}

TEST(TransactionsPlanted, ARequestOfAForgottenClientThatIsDoneIsNoticed) {
  expect_noticed_by(store::Bug::unknown_client_runs, asked_by_a_forgotten_client);
}

}  // namespace
}  // namespace espalier::test
