// SPDX-License-Identifier: Apache-2.0
// Rows that a node writes into several buffers of a client: the rows are the same whatever the
// client gives back, and when; a run with buffers in hand can end early, with its client, or with
// its table. Where the node cannot write there, it sends blocks, and the same holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "client/store_impl.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/offload/table_services.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/value.hpp"
#include "tests/support/column_pipeline.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/results_by_hand.hpp"
#include "tests/support/seed.hpp"

namespace espalier {
namespace {

using test::ResultsByHand;

constexpr std::uint64_t kRoomRows = 60'000;
constexpr std::size_t kStage = std::size_t{64} << 10;

// None is null: operators only store, so rows go straight into buffers where they are mapped.
constexpr const char* kSchemaText = "id i64 not null, shop i64 not null, size i64 not null";

std::vector<std::byte> numbered_rows(const table::Schema& schema) {
  std::vector<std::byte> bytes(kRoomRows * schema.row_bytes());
  for (std::uint64_t i = 0; i < kRoomRows; ++i) {
    std::byte* const row = bytes.data() + i * schema.row_bytes();
    const auto id = static_cast<std::int64_t>(i);
    write_value(schema.column(0), table::Value::of(id), row);
    write_value(schema.column(1), table::Value::of(id % 700), row);
    write_value(schema.column(2), table::Value::of(-id), row);
  }
  return bytes;
}

class ResultRooms : public test::NodeOverEachWay {
 protected:
  void SetUp() override {
    start();
    store_.emplace(connect());
    tables_ = client::StoreImpl::of(*store_).tables();
    table_ = *tables_->create("t", schema_, {});
    ASSERT_TRUE(table_->append(rows_));
    number_ = tables_->list()->at(0).number;
  }
  [[nodiscard]] ResultsByHand reader(std::uint32_t buffers) const {
    return {address(), buffers, test::pipeline_of_columns(3)};
  }
  /// Takes the next piece, whose rows are those that come next. False: there was none.
  [[nodiscard]] bool take(ResultsByHand& reader, std::size_t& at,
                          std::deque<std::uint32_t>& full) const {
    const auto place = reader.next();
    if (!place) return false;
    EXPECT_TRUE(at + place->bytes <= rows_.size() &&
                std::equal(reader.at(*place), reader.at(*place) + place->bytes,
                           rows_.begin() + static_cast<std::ptrdiff_t>(at)))
        << at;
    at += place->bytes;
    if ((place->flags & wire::kBufferFull) != 0) full.push_back(place->buffer);
    return true;
  }
  /// Reads all rows, and gives each buffer back once it is read.
  void expect_all_rows(ResultsByHand& reader) const {
    reader.begin(number_);
    std::size_t at = 0;
    std::deque<std::uint32_t> full;
    while (take(reader, at, full)) {
      if (!full.empty()) reader.give_back(std::vector<std::uint32_t>(full.begin(), full.end()));
      full.clear();
    }
    EXPECT_FALSE(reader.ended_by());
    EXPECT_GT(at, rows_.size() - kStage);
  }
  void await_no_query() const {
    const auto& counts = node_->services().part<offload::TableServices>().query_counts;
    while (counts.running.load() + counts.waiting.load() != 0) std::this_thread::yield();
  }

  const table::Schema schema_ = *table::Schema::parse(kSchemaText);
  const std::vector<std::byte> rows_ = numbered_rows(schema_);
  std::optional<Store> store_;
  std::unique_ptr<client::TablesImpl> tables_;
  std::shared_ptr<client::TableImpl> table_;
  std::uint32_t number_ = 0;
};
INSTANTIATE_TEST_SUITE_P(By, ResultRooms, ::testing::Values("shm", "roce"), test::way_name);

TEST_P(ResultRooms, AnyNumberOfBuffersServes) {
  for (const std::uint32_t buffers : {1u, 2u, 3u, 7u, 16u}) {
    SCOPED_TRACE(buffers);
    ResultsByHand client = reader(buffers);
    ASSERT_FALSE(client.offer(client.good_offer()));
    for (int run = 0; run < 3; ++run) expect_all_rows(client);
  }
}

// The client keeps all buffers but one, and gives one back for each that is filled.
TEST_P(ResultRooms, CreditsForOneAtATimeAreEnough) {
  constexpr std::uint32_t kBuffers = 8;
  ResultsByHand client = reader(kBuffers);
  ASSERT_FALSE(client.offer(client.good_offer()));
  client.begin(number_);
  std::size_t at = 0;
  std::deque<std::uint32_t> full;
  while (full.size() < kBuffers) ASSERT_TRUE(take(client, at, full));
  for (std::uint64_t given = 1;; ++given) {
    const std::uint32_t buffer = full.front();
    full.pop_front();
    client.give_back({buffer});
    const std::size_t kept = full.size();
    while (full.size() == kept) {
      if (!take(client, at, full)) {
        EXPECT_FALSE(client.ended_by());
        EXPECT_GT(at, rows_.size() - kStage);
        EXPECT_GT(given, rows_.size() / ResultsByHand::kBufferBytes - kBuffers);
        return;
      }
    }
    EXPECT_EQ(full.back(), buffer);  // no other was free
  }
}

// Any of those that it has, any number of them, in any order.
TEST_P(ResultRooms, CreditsComeInAnyOrder) {
  const std::uint64_t seed = test::seed_from_environment(3);
  SCOPED_TRACE(test::seed_text(seed));
  base::Random random(seed);
  constexpr std::uint32_t kBuffers = 5;
  ResultsByHand client = reader(kBuffers);
  ASSERT_FALSE(client.offer(client.good_offer()));
  for (std::uint64_t run = 0; run < test::steps_or(10); ++run) {
    client.begin(number_);
    std::size_t at = 0;
    std::deque<std::uint32_t> full;
    while (take(client, at, full)) {
      if (full.size() < kBuffers && random.below(2) == 0) continue;
      std::vector<std::uint32_t> back;
      for (std::uint64_t left = 1 + random.below(std::max<std::size_t>(full.size(), 1));
           left != 0 && !full.empty(); --left) {
        const auto one = full.begin() + static_cast<std::ptrdiff_t>(random.below(full.size()));
        back.push_back(*one);
        full.erase(one);
      }
      if (!back.empty()) client.give_back(back);
    }
    EXPECT_FALSE(client.ended_by());
    EXPECT_GT(at, rows_.size() - kStage);
  }
}

// Helpers fill some, others are announced, the client has some more: all serve the next run.
TEST_P(ResultRooms, ARunThatIsCancelledWithBuffersInHandLeavesThem) {
  constexpr std::uint32_t kBuffers = 6;
  ResultsByHand client = reader(kBuffers);
  ASSERT_FALSE(client.offer(client.good_offer()));
  for (std::uint32_t pieces = 0; pieces <= 2 * kBuffers; ++pieces) {
    SCOPED_TRACE(pieces);
    client.begin(number_);
    std::size_t at = 0;
    std::deque<std::uint32_t> full;
    for (std::uint32_t i = 0; i < pieces; ++i) {
      ASSERT_TRUE(take(client, at, full));
      if (full.size() < kBuffers) continue;
      client.give_back({full.front()});
      full.pop_front();
    }
    ASSERT_TRUE(client.cancel());
    while (take(client, at, full)) {
    }
    EXPECT_LT(at, rows_.size());
    await_no_query();
    expect_all_rows(client);
  }
}

TEST_P(ResultRooms, AClientThatGoesWithBuffersInHandLeavesNothing) {
  for (std::uint32_t pieces = 0; pieces < 6; ++pieces) {
    {
      ResultsByHand client = reader(4);
      ASSERT_FALSE(client.offer(client.good_offer()));
      client.begin(number_);
      std::size_t at = 0;
      std::deque<std::uint32_t> full;
      for (std::uint32_t i = 0; i < pieces && full.size() < 4; ++i) {
        ASSERT_TRUE(take(client, at, full));
      }
    }
    await_no_query();
  }
  ResultsByHand client = reader(4);
  ASSERT_FALSE(client.offer(client.good_offer()));
  expect_all_rows(client);
}

TEST_P(ResultRooms, ATableThatIsDroppedEndsARunWithBuffersInHand) {
  // That it is dropped is seen at the next page.
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(table_->append(rows_));
  ResultsByHand client = reader(4);
  ASSERT_FALSE(client.offer(client.good_offer()));
  client.begin(number_);
  ASSERT_TRUE(client.next());
  ASSERT_TRUE(tables_->drop("t"));
  while (const auto place = client.next()) {
    if ((place->flags & wire::kBufferFull) != 0) client.give_back({place->buffer});
  }
  ASSERT_TRUE(client.ended_by());
  EXPECT_EQ(client.ended_by()->error.code, Code::dropped);
  await_no_query();
}

using ResultRoomsConcurrency = ResultRooms;
INSTANTIATE_TEST_SUITE_P(By, ResultRoomsConcurrency, ::testing::Values("shm", "roce"),
                         test::way_name);

TEST_P(ResultRoomsConcurrency, RunsEndEarlyBesideOthersThatDoNot) {
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([this, thread] {
      ResultsByHand client = reader(3 + thread);
      EXPECT_FALSE(client.offer(client.good_offer()));
      for (std::uint32_t round = 0; round < 6; ++round) {
        client.begin(number_);
        std::size_t at = 0;
        std::deque<std::uint32_t> full;
        for (std::uint32_t i = 0; i < round && full.size() < 3; ++i) {
          EXPECT_TRUE(take(client, at, full));
        }
        EXPECT_TRUE(client.cancel());
        while (take(client, at, full)) {
        }
        expect_all_rows(client);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  await_no_query();
}

}  // namespace
}  // namespace espalier
