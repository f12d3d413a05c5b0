// SPDX-License-Identifier: Apache-2.0
// Rules of transactions, each broken in turn: the checks notice.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "store/planted_store_bugs.hpp"
#include "tests/durability/transaction_store.hpp"

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

}  // namespace
}  // namespace espalier::test
