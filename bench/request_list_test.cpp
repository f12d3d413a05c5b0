// SPDX-License-Identifier: Apache-2.0
// The guarantees of request_list.hpp, which make targets comparable.
#include "bench/request_list.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "bench/answers.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kKeys = 5000;
constexpr std::uint64_t kOps = 5 * kWindow / 2;

RequestPlan plan_for(Workload workload) {
  RequestPlan plan;
  plan.workload = workload;
  plan.distribution = default_distribution(workload);
  plan.ops = kOps;
  plan.tail_ops = kWindow;
  return plan;
}

// The tail runs apart from the measured part, in windows of its own.
bool begins_window(std::uint64_t i) { return (i < kOps ? i : i - kOps) % kWindow == 0; }

class RequestLists : public testing::Test {
 protected:
  KeySet keys_ = KeySet::random(kKeys, 16, 11);
};

TEST_F(RequestLists, TagsCountUp) {
  const RequestList list = make_requests(keys_, plan_for(Workload::f), 0);
  ASSERT_EQ(list.size(), kOps + kWindow);
  for (std::uint64_t i = 0; i < list.size(); ++i) {
    ASSERT_EQ(list.requests()[i].tag & ~kReadModifyWriteTag, i);
  }
}

TEST_F(RequestLists, SharesAreThoseOfTheWorkload) {
  const auto share = [this](Workload workload, Op op) {
    std::uint64_t count = 0;
    const RequestList list = make_requests(keys_, plan_for(workload), 0);
    for (const Request& request : list.requests()) count += request.op == op ? 1 : 0;
    return static_cast<double>(count) / static_cast<double>(list.size());
  };
  EXPECT_NEAR(share(Workload::a, Op::put), 0.5, 0.02);
  EXPECT_NEAR(share(Workload::b, Op::put), 0.05, 0.01);
  EXPECT_EQ(share(Workload::c, Op::get), 1.0);
  EXPECT_NEAR(share(Workload::d, Op::insert), 0.05, 0.01);
  EXPECT_NEAR(share(Workload::e, Op::scan), 0.95, 0.01);
  EXPECT_EQ(share(Workload::f, Op::get), 1.0);
  EXPECT_NEAR(share(Workload::cloud, Op::scan_floor), 0.8, 0.02);
}

TEST_F(RequestLists, InsertsAreReadInLaterWindowsOnly) {
  const RequestList list = make_requests(keys_, plan_for(Workload::d), 0);
  std::set<std::string> present;
  for (std::uint64_t i = 0; i < kKeys; ++i) present.emplace(keys_.key(i));
  std::set<std::string> inserted;
  std::uint64_t reads_of_inserted = 0;
  for (std::uint64_t i = 0; i < list.size(); ++i) {
    if (begins_window(i)) {
      present.merge(inserted);
      inserted.clear();
    }
    const Request& request = list.requests()[i];
    if (request.op == Op::insert) {
      ASSERT_FALSE(present.contains(std::string(request.key)));
      ASSERT_TRUE(inserted.emplace(request.key).second);
    } else {
      ASSERT_TRUE(present.contains(std::string(request.key)));
      if (present.size() > kKeys) ++reads_of_inserted;
    }
  }
  EXPECT_GT(reads_of_inserted, 0U);
}

TEST_F(RequestLists, UpdatesOfAKeyInOneWindowAgree) {
  const RequestList list = make_requests(keys_, plan_for(Workload::a), 0);
  std::map<std::string, std::string> written;
  std::set<std::string> values_of_all_windows;
  for (std::uint64_t i = 0; i < list.size(); ++i) {
    if (begins_window(i)) written.clear();
    const Request& request = list.requests()[i];
    if (request.op != Op::put) continue;
    const auto [at, is_new] = written.emplace(request.key, request.value);
    ASSERT_EQ(at->second, request.value);
    if (is_new) {
      ASSERT_TRUE(values_of_all_windows.emplace(request.value).second);
    }
  }
}

TEST_F(RequestLists, LimitedScansAreFilledByTheLoadedKeys) {
  const RequestList list = make_requests(keys_, plan_for(Workload::e), 0);
  std::set<std::uint32_t> limits;
  for (const Request& request : list.requests()) {
    if (request.op != Op::scan) continue;
    limits.insert(request.limit);
    ASSERT_LE(request.key, keys_.key_of_rank(kKeys - 100));
  }
  EXPECT_EQ(limits.size(), 100U);
  EXPECT_EQ(*limits.begin(), 1U);
  EXPECT_EQ(*limits.rbegin(), 100U);
}

TEST_F(RequestLists, BoundedScansHoldThreeLoadedKeys) {
  std::map<std::string, std::uint64_t> rank_of;
  for (std::uint64_t rank = 0; rank < kKeys; ++rank) rank_of.emplace(keys_.key_of_rank(rank), rank);
  const RequestList list = make_requests(keys_, plan_for(Workload::cloud), 0);
  for (const Request& request : list.requests()) {
    if (request.op != Op::scan_floor) continue;
    auto floor = rank_of.upper_bound(std::string(request.key));
    ASSERT_NE(floor, rank_of.begin());
    --floor;
    const auto high = rank_of.find(std::string(request.high));
    ASSERT_NE(high, rank_of.end());
    ASSERT_EQ(high->second - floor->second, 2U);
    ASSERT_EQ(request.key.size(), 16U);
  }
}

TEST_F(RequestLists, KeysAreCoveredOnceByAllThreads) {
  for (const Workload workload : {Workload::load, Workload::load_ascending, Workload::erase}) {
    RequestPlan plan = plan_for(workload);
    plan.threads = 3;
    plan.ops = workload == Workload::erase ? kKeys - 100 : kKeys;
    plan.tail_ops = 100;
    std::set<std::string> covered;
    for (std::uint32_t thread = 0; thread < 3; ++thread) {
      const RequestList list = make_requests(keys_, plan, thread);
      for (const Request& request : list.requests()) {
        EXPECT_TRUE(covered.emplace(request.key).second);
      }
    }
    EXPECT_EQ(covered.size(), workload == Workload::erase ? kKeys : kKeys + 100);
  }
}

TEST_F(RequestLists, AscendingMeansAscending) {
  const RequestList list = make_requests(
      keys_,
      [] {
        RequestPlan plan = plan_for(Workload::load_ascending);
        plan.ops = kKeys;
        return plan;
      }(),
      0);
  for (std::uint64_t i = 1; i < kKeys; ++i) {
    ASSERT_LT(list.requests()[i - 1].key, list.requests()[i].key);
  }
}

TEST_F(RequestLists, OneSeedOneList) {
  const RequestPlan plan = plan_for(Workload::a);
  const RequestList a = make_requests(keys_, plan, 0);
  const RequestList b = make_requests(keys_, plan, 0);
  const RequestList other = make_requests(keys_, plan, 1);
  std::uint64_t equal = 0;
  for (std::uint64_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a.requests()[i].key, b.requests()[i].key);
    if (i < other.size() && a.requests()[i].key == other.requests()[i].key) ++equal;
  }
  EXPECT_LT(equal, a.size() / 4);
}

}  // namespace
}  // namespace espalier::bench
