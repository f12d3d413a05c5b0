// SPDX-License-Identifier: Apache-2.0
// Adds: what they sum up to, what they refuse, and what it takes when many are of one key.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

class Adds : public testing::Test {
 protected:
  static std::uint64_t number_of(std::string_view bytes) {
    std::uint64_t number = 0;
    EXPECT_EQ(bytes.size(), sizeof number);
    if (bytes.size() == sizeof number) std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }
  Response add(std::string_view key, std::uint64_t amount) {
    return node_.call(client_, request_of(OffloadId::add, node_.map()), key,
                      base::bytes_of(amount));
  }
  Response put(std::string_view key, std::string_view value) {
    return node_.call(client_, request_of(OffloadId::put, node_.map()), key, value);
  }
  /// Has so many adds to one key in flight together; returns after how many turns all are answered.
  int turns_of_adds(std::uint64_t adds, std::vector<Response>& answers) {
    const std::uint64_t one = 1;
    for (std::uint32_t i = 0; i < adds; ++i) {
      client_->post(
          message_of(request_of(OffloadId::add, node_.map(), i), "key", base::bytes_of(one)));
    }
    client_->ring();
    int turns = 0;
    for (; answers.size() < adds && turns < 100'000; ++turns) {
      node_.turn();
      while (auto response = client_->receive()) answers.push_back(std::move(*response));
    }
    return turns;
  }

  SchedulerFixture node_;
  SchedulerFixture::Client& client_ = node_.connect({4096, 4096, 1});
};

TEST_F(Adds, SumUpAndTellWhetherAValueWasThere) {
  const Response first = add("key", 5);
  EXPECT_TRUE(first.applied());
  EXPECT_FALSE(first.found());
  EXPECT_EQ(number_of(first.payload), 5u);
  const Response second = add("key", ~std::uint64_t{0});  // wraps round
  EXPECT_TRUE(second.found());
  EXPECT_EQ(number_of(second.payload), 4u);
  EXPECT_GT(second.header.version, first.header.version);
  EXPECT_EQ(number_of(node_.call(client_, request_of(OffloadId::get, node_.map()), "key").payload),
            4u);
}

TEST_F(Adds, RefuseWhatIsNoNumberAndLeaveIt) {
  for (const std::size_t bytes : {0, 7, 9, 5000}) {
    const std::string value(bytes, 'v');
    ASSERT_TRUE(put("key", value).applied());
    const Response refused = add("key", 1);
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_EQ(refused.detail(), bytes);
    EXPECT_EQ(node_.call(client_, request_of(OffloadId::get, node_.map()), "key").payload, value);
  }
}

// A leaf's log is merged, and leaves are split, by adds as by puts.
TEST_F(Adds, GoOnOverChangesOfStructure) {
  constexpr std::uint64_t kKeys = 400;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const std::string key = std::string(40, 'k') + std::to_string(i * 7919 % kKeys);
      ASSERT_EQ(number_of(add(key, i).payload), round * i);
    }
  }
  EXPECT_GT(node_.core().splits.load(), 0u);
  EXPECT_GT(node_.core().log_merges.sum(), 0u);
  EXPECT_EQ(node_.audit(), std::vector<std::string>{});
}

// None is tried again because another came between, which would let one end in each turn.
TEST_F(Adds, OfOneKeyEndManyInATurn) {
  constexpr std::uint64_t kTogether = 128;
  std::vector<Response> answers;
  const int turns = turns_of_adds(kTogether, answers);
  ASSERT_EQ(answers.size(), kTogether);
  std::vector<std::uint64_t> sums;
  for (const Response& answer : answers) sums.push_back(number_of(answer.payload));
  std::ranges::sort(sums);
  for (std::uint64_t i = 0; i < kTogether; ++i) EXPECT_EQ(sums[i], i + 1);
  EXPECT_LT(turns, static_cast<int>(kTogether) / 4);
}

}  // namespace
}  // namespace espalier::offload
