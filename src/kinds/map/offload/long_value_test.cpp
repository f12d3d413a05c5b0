// SPDX-License-Identifier: Apache-2.0
// Long values are copied by helpers in bounded steps, and come whole, whatever is written
// meanwhile.
#include "kinds/map/offload/long_value.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/map/batch_entries.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

/// A step is over after its first piece.
FixtureOptions short_steps() {
  FixtureOptions options;
  options.helpers.step_ns = 1;
  return options;
}

std::string long_value(char which, std::size_t bytes) {
  std::string value(bytes, which);
  for (std::size_t i = 0; i < bytes; i += 1000) value[i] = static_cast<char>(i / 1000);
  return value;
}

class LongValues : public testing::Test {
 protected:
  Response put(std::string_view key, std::string_view value) {
    return node_.call(client_, request_of(OffloadId::put, node_.map()), key, value);
  }
  Response read(OffloadId offload, std::string_view key, std::string_view high = {},
                std::uint32_t limit = 0) {
    wire::RequestHeader header = request_of(offload, node_.map());
    header.argument = limit;
    return node_.call(client_, header, key, high);
  }
  static std::string comparison(std::string_view expected) {
    wire::Comparison comparison{};
    comparison.kind = static_cast<std::uint8_t>(ConditionKind::value);
    comparison.expected_bytes = static_cast<std::uint32_t>(expected.size());
    return std::string(bytes_of(comparison));
  }
  Response compare_and_set(std::string_view key, std::string_view expected,
                           std::string_view value) {
    return node_.call(client_, request_of(OffloadId::compare_and_set, node_.map()), key,
                      comparison(expected).append(expected).append(value));
  }
  /// What a scan answered.
  static std::vector<std::pair<std::string, std::string>> items_of(const Response& answered) {
    std::vector<std::pair<std::string, std::string>> items;
    std::string_view rest = answered.payload;
    while (rest.size() >= sizeof(wire::ItemHeader)) {
      wire::ItemHeader header;
      std::memcpy(&header, rest.data(), sizeof header);
      rest.remove_prefix(sizeof header);
      items.emplace_back(rest.substr(0, header.key_bytes),
                         rest.substr(header.key_bytes, header.value_bytes));
      rest.remove_prefix(std::size_t{header.key_bytes} + header.value_bytes);
    }
    EXPECT_TRUE(rest.empty());
    return items;
  }
  [[nodiscard]] std::uint64_t steps() { return node_.services().helpers.numbers().steps; }

  SchedulerFixture node_{short_steps()};
  SchedulerFixture::Client& client_ = node_.connect({4096, 4096, 1});
};

TEST_F(LongValues, StepsOfHelpersCopyOnePieceEach) {
  const std::string value = long_value('v', wire::kValueBytesMax);
  const std::uint64_t pieces = value.size() / kCopiedBytes;
  ASSERT_TRUE(put("key", value).applied());
  EXPECT_GE(steps(), pieces);
  const std::uint64_t before = steps();
  const Response got = read(OffloadId::get, "key");
  EXPECT_EQ(got.payload, value);
  EXPECT_GE(steps() - before, pieces);
  EXPECT_EQ(node_.services().budget.used(), 0u);
}

// Its rings have room for many of them, and it reads none.
TEST_F(LongValues, AClientThatDoesNotReadHasFewInTheMaking) {
  constexpr std::size_t kBytes = 900'000;
  ASSERT_TRUE(put("key", long_value('v', kBytes)).applied());
  auto& slow = node_.connect({4096, 16384, 4}, 2);
  for (std::uint32_t i = 0; i < 100; ++i) {
    wire::RequestHeader header =
        request_of(i % 2 == 0 ? OffloadId::get : OffloadId::scan, node_.map(), i);
    header.ring = static_cast<std::uint8_t>(i % 4);
    slow->post(message_of(header, "key", ""));
  }
  slow->ring();
  std::uint64_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    node_.turn();
    most = std::max(most, node_.services().budget.used());
  }
  EXPECT_GT(most, kBytes);
  EXPECT_LE(most, 4 * (ClientTableOptions{}.response_bytes_max + kBytes));
  for (std::uint32_t answered = 0; answered < 100;) {
    for (std::uint32_t ring = 0; ring < 4; ++ring) {
      while (const auto response = slow->receive(ring)) answered += response->answers() ? 1 : 0;
    }
    node_.turn();
  }
  EXPECT_EQ(node_.services().budget.used(), 0u);
}

// They are few, and each is tried again until it runs.
TEST(LongValuesWithFewJobs, AreAllAnswered) {
  FixtureOptions options = short_steps();
  options.helpers.client_jobs_max = 1;
  SchedulerFixture node{options};
  auto& client = node.connect({4096, 4096, 1});
  const std::string value = long_value('v', 600'000);
  ASSERT_TRUE(node.call(client, request_of(OffloadId::put, node.map()), "key", value).applied());
  for (std::uint32_t i = 0; i < 8; ++i) {
    client->post(message_of(request_of(i % 2 == 0 ? OffloadId::get : OffloadId::put, node.map(), i),
                            i % 2 == 0 ? "key" : "other", i % 2 == 0 ? "" : value));
  }
  client->ring();
  for (int i = 0; i < 8; ++i) {
    const Response response = node.wait(client);
    ASSERT_NE(response.header.kind, 0) << "nothing came";
    EXPECT_EQ(response.header.code, 0);
    EXPECT_EQ(response.payload, response.header.tag % 2 == 0 ? value : "");
  }
}

TEST_F(LongValues, BatchesCopyThemPieceByPiece) {
  const std::string value = long_value('v', 8 << 20);
  const std::string other = long_value('o', 1 << 20);
  tree::BatchStep put{.kind = wire::BatchKind::put, .key = "a", .value = value};
  std::string entries;
  tree::append_step(entries, {.kind = wire::BatchKind::put, .key = "a", .value = other});
  tree::append_step(entries, put);  // of two writes of a key the last one counts
  put.key = "b";
  tree::append_step(entries, put);
  wire::RequestHeader header = request_of(OffloadId::write_batch, node_.map());
  header.argument = 3;
  const std::uint64_t before = steps();
  ASSERT_TRUE(node_.call(client_, header, "", entries).applied());
  EXPECT_GE(steps() - before, (2 * value.size() + other.size()) / kCopiedBytes);
  EXPECT_EQ(read(OffloadId::get, "a").payload, value);
  EXPECT_EQ(read(OffloadId::get, "b").payload, value);
  const std::uint64_t held = node_.core().memory_bytes();
  // One whose check fails gives all of them back.
  tree::append_step(
      entries,
      {.kind = wire::BatchKind::check, .key = "a", .condition = {ConditionKind::absent, 0, {}}});
  header.argument = 4;
  EXPECT_EQ(node_.call(client_, header, "", entries).code(), Code::condition_failed);
  EXPECT_EQ(node_.core().memory_bytes(), held);
  const auto wrong = node_.audit();
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

TEST_F(LongValues, AreComparedAndSetPieceByPiece) {
  const std::string first = long_value('1', 4 << 20);
  const std::string second = long_value('2', 4 << 20);
  ASSERT_TRUE(put("key", first).applied());
  std::string almost = first;
  almost.back() = 'x';
  for (const std::string_view wrong : {std::string_view(almost), std::string_view(second),
                                       std::string_view(first).substr(1), std::string_view()}) {
    EXPECT_EQ(compare_and_set("key", wrong, second).code(), Code::condition_failed);
  }
  EXPECT_EQ(compare_and_set("absent", first, second).code(), Code::condition_failed);
  EXPECT_EQ(read(OffloadId::get, "key").payload, first);
  const std::uint64_t before = steps();
  EXPECT_TRUE(compare_and_set("key", first, second).applied());
  EXPECT_GE(steps() - before, (first.size() + second.size()) / kCopiedBytes);
  EXPECT_EQ(read(OffloadId::get, "key").payload, second);
  EXPECT_TRUE(compare_and_set("key", second, "short").applied());
  EXPECT_TRUE(compare_and_set("key", "short", first).applied());
  EXPECT_EQ(read(OffloadId::get, "key").payload, first);
  EXPECT_EQ(node_.store().epoch_pins.oldest(), base::EpochPins::kNone);
  const auto wrong = node_.audit();
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

// What was compared is replaced before the write: by the same bytes, which are compared anew, and
// by others.
TEST_F(LongValues, AComparisonHoldsWhenItsWriteIsDone) {
  auto& writer = node_.connect({4096, 64, 1}, 2);
  constexpr std::size_t kBytes = 1'000'000;
  const std::string first = long_value('1', kBytes);
  const std::string second = long_value('2', kBytes);
  for (const bool same : {true, false}) {
    for (int turns = 0; turns < 40; ++turns) {
      ASSERT_TRUE(put("key", first).applied());
      client_->post(message_of(request_of(OffloadId::compare_and_set, node_.map()), "key",
                               comparison(first).append(first).append(second)));
      client_->ring();
      node_.turns(turns);
      const std::string& meanwhile = same ? first : "another";
      ASSERT_TRUE(
          node_.call(writer, request_of(OffloadId::put, node_.map()), "key", meanwhile).applied());
      const Response done = node_.wait(client_);
      ASSERT_NE(done.header.kind, 0) << "nothing came";
      const std::string now = read(OffloadId::get, "key").payload;
      if (done.applied()) {
        // Of the same bytes either write may have come first.
        EXPECT_TRUE(now == (same ? second : "another") || (same && now == first)) << turns;
      } else {
        EXPECT_FALSE(same) << turns;
        EXPECT_EQ(done.code(), Code::condition_failed);
        EXPECT_EQ(now, "another");
      }
    }
  }
  EXPECT_EQ(node_.store().epoch_pins.oldest(), base::EpochPins::kNone);
  const auto wrong = node_.audit();
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

TEST_F(LongValues, ShortOnesNeedNoHelper) {
  const std::string value = long_value('v', kLongValueBytes);
  ASSERT_TRUE(put("key", value).applied());
  EXPECT_EQ(read(OffloadId::get, "key").payload, value);
  EXPECT_EQ(steps(), 0u);
}

TEST_F(LongValues, ALongerOneThanMayBeIsRefused) {
  EXPECT_EQ(put("key", std::string(wire::kValueBytesMax + 1, 'v')).code(), Code::value_too_long);
  EXPECT_EQ(put(std::string(1000, 'k'), std::string(kLongValueBytes + 1, 'v')).code(),
            Code::key_too_long);
  EXPECT_TRUE(node_.audit().empty());
}

TEST_F(LongValues, WritesThatDoNotApplyGiveTheirBuffersBack) {
  const std::string value = long_value('v', 8 << 20);
  ASSERT_TRUE(put("key", "short").applied());
  const std::uint64_t before = node_.core().memory_bytes();
  for (int i = 0; i < 3; ++i) {
    const Response refused =
        node_.call(client_, request_of(OffloadId::insert, node_.map()), "key", value);
    EXPECT_EQ(refused.header.code, 0);
    EXPECT_FALSE(refused.applied());
    EXPECT_FALSE(
        node_.call(client_, request_of(OffloadId::update, node_.map()), "absent", value).applied());
  }
  EXPECT_EQ(node_.core().memory_bytes(), before);
  EXPECT_EQ(read(OffloadId::get, "key").payload, "short");
  EXPECT_TRUE(
      node_.call(client_, request_of(OffloadId::update, node_.map()), "key", value).applied());
  EXPECT_EQ(read(OffloadId::get, "key").payload, value);
  const auto wrong = node_.audit();
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

TEST_F(LongValues, ScansBringThemAmongShortOnes) {
  std::vector<std::pair<std::string, std::string>> expected;
  for (int i = 0; i < 40; ++i) {
    const std::size_t bytes = i % 5 == 0 ? 1'000'000 : i % 5 == 1 ? 3 : 20'000;
    expected.emplace_back("key" + std::to_string(10 + i), long_value('a', bytes));
    ASSERT_TRUE(put(expected.back().first, expected.back().second).applied());
  }
  EXPECT_EQ(items_of(read(OffloadId::scan, "")), expected);
  EXPECT_EQ(items_of(read(OffloadId::scan_floor, "key10")), expected);
  EXPECT_EQ(items_of(read(OffloadId::scan, "", {}, 6)),
            std::vector(expected.begin(), expected.begin() + 6));
  EXPECT_EQ(items_of(read(OffloadId::scan, "", "key15")),
            std::vector(expected.begin(), expected.begin() + 5));
  const std::vector reversed(expected.rbegin(), expected.rend());
  EXPECT_EQ(items_of(read(OffloadId::scan_reverse, "")), reversed);
  EXPECT_EQ(items_of(read(OffloadId::floor, "key159")),
            std::vector(expected.begin() + 5, expected.begin() + 6));
  EXPECT_EQ(node_.services().budget.used(), 0u);
}

// While it is copied its item is replaced again and again, and what is unlinked collected.
TEST_F(LongValues, WhatIsReplacedMeanwhileComesWhole) {
  auto& writer = node_.connect({4096, 64, 1}, 2);
  // What is replaced is less than snapshots may hold together.
  constexpr std::size_t kBytes = 1'000'000;
  const std::string first = long_value('1', kBytes);
  ASSERT_TRUE(put("key", first).applied());
  for (const OffloadId offload : {OffloadId::get, OffloadId::scan}) {
    ASSERT_TRUE(put("key", first).applied());
    const std::string_view key = offload == OffloadId::get ? "key" : "";
    client_->post(message_of(request_of(offload, node_.map()), key, ""));
    client_->ring();
    node_.turns(3);
    for (int i = 0; i < 20; ++i) {
      const std::string other(kBytes, static_cast<char>('a' + i));
      ASSERT_TRUE(
          node_.call(writer, request_of(OffloadId::put, node_.map()), "key", other).applied());
    }
    std::string whole;
    for (bool last = false; !last;) {
      const Response response = node_.wait(client_);
      ASSERT_NE(response.header.kind, 0) << "nothing came";
      ASSERT_EQ(response.header.code, 0);
      whole += response.payload;
      last = response.answers();
    }
    EXPECT_EQ(offload == OffloadId::get ? whole : items_of({{}, whole}).at(0).second, first);
  }
  EXPECT_TRUE(node_.run_until_idle());
  EXPECT_EQ(node_.store().epoch_pins.oldest(), base::EpochPins::kNone);
  const auto wrong = node_.audit();
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

TEST_F(LongValues, AClientThatEndsLeavesNothing) {
  const std::string value = long_value('v', 4 << 20);
  ASSERT_TRUE(put("key", value).applied());
  const std::uint64_t before = node_.core().memory_bytes();
  for (const OffloadId offload : {OffloadId::get, OffloadId::put}) {
    for (int turns = 0; turns < 6; ++turns) {
      auto& gone = node_.connect({65536, 64, 1}, 3);
      gone->post(message_of(request_of(offload, node_.map()),
                            offload == OffloadId::put ? "k" : "key",
                            offload == OffloadId::put ? value : ""));
      gone->ring();
      node_.turns(turns);
      node_.disconnect(gone);
      ASSERT_TRUE(node_.run_until_idle());
    }
  }
  EXPECT_EQ(node_.services().budget.used(), 0u);
  EXPECT_EQ(node_.store().epoch_pins.oldest(), base::EpochPins::kNone);
  if (read(OffloadId::get, "k").header.flags == 0) {
    EXPECT_EQ(node_.core().memory_bytes(), before);
  }
  const auto wrong = node_.audit();
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

}  // namespace
}  // namespace espalier::offload
