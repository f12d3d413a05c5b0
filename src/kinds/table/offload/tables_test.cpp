// SPDX-License-Identifier: Apache-2.0
// Offloads on tables: what they answer, what they refuse, and that neither a client that does not
// read nor one that goes away keeps anything.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "engine/payload_reader.hpp"
#include "engine/principal.hpp"
#include "engine/principal_accounts.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/table/format/result_buffers.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/offload/query_limits.hpp"
#include "kinds/table/offload/query_run.hpp"
#include "kinds/table/offload/table_services.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/table.hpp"
#include "kinds/table/value.hpp"

namespace espalier::offload {
namespace {

using table::PipelineBuilder;
using wire::OffloadId;

constexpr const char* kSchemaText = "id i64 not null, shop i32, price decimal(12,2)";

class TableOffloads : public testing::Test {
 protected:
  TableOffloads() : schema_(*table::Schema::parse(kSchemaText)) {}

  Response call(OffloadId offload, std::string_view key, std::string_view payload = {}) {
    return node_.call(client_, request_of(offload, table_, ++tag_), key, payload);
  }
  void create() {
    std::vector<std::byte> bytes(schema_.encoded_bytes());
    schema_.encode(bytes);
    const Response made = call(OffloadId::table_create, "t", text_of(bytes));
    ASSERT_TRUE(made.answers());
    ASSERT_EQ(made.header.code, 0) << made.payload;
    table_ = static_cast<std::uint32_t>(made.header.version);
  }
  /// Rows `first` to `first + count`, each shop with every tenth.
  [[nodiscard]] std::string rows(std::uint64_t first, std::uint64_t count) const {
    std::string bytes(count * schema_.row_bytes(), '\0');
    for (std::uint64_t i = 0; i < count; ++i) {
      auto* row = reinterpret_cast<std::byte*>(bytes.data()) + i * schema_.row_bytes();
      const auto id = static_cast<std::int64_t>(first + i);
      write_value(schema_.column(0), table::Value::of(id), row);
      write_value(schema_.column(1), table::Value::of(id % 10), row);
      write_value(schema_.column(2), table::Value::of(id * 5), row);
    }
    return bytes;
  }
  void fill(std::uint64_t count) {
    create();
    constexpr std::uint64_t kTogether = 10'000;
    for (std::uint64_t i = 0; i < count; i += kTogether) {
      const Response appended = call(OffloadId::table_append, "", rows(i, kTogether));
      ASSERT_EQ(appended.header.code, 0) << appended.payload;
      ASSERT_EQ(appended.header.version, i);
    }
  }
  /// All places to run in.
  std::vector<std::unique_ptr<QueryLimits::Query>> take_places() {
    std::vector<std::unique_ptr<QueryLimits::Query>> taken;
    for (std::uint32_t i = 0; i < QueryLimits::kRunning; ++i) {
      const PrincipalRef account = node_.services().principals.of("place " + std::to_string(i));
      taken.push_back(node_.services().part<TableServices>().queries.open(account, nullptr));
      EXPECT_TRUE(taken.back() && taken.back()->take_place());
    }
    return taken;
  }
  static std::string everything(const table::Schema& schema) {
    PipelineBuilder builder;
    std::vector<PipelineBuilder::NodeId> columns;
    for (std::size_t i = 0; i < schema.columns().size(); ++i) columns.push_back(builder.column(i));
    builder.project(columns);
    return std::string(text_of(*builder.finish()));
  }
  static wire::QueryNumbers numbers_of(const Response& response) {
    wire::QueryNumbers numbers{};
    EXPECT_GE(response.payload.size(), sizeof numbers);
    std::memcpy(&numbers, response.payload.data(), sizeof numbers);
    return numbers;
  }

  SchedulerFixture node_;
  SchedulerFixture::Client& client_ = node_.connect({64, 256, 1});
  const table::Schema schema_;
  std::uint32_t table_ = 0;
  std::uint32_t tag_ = 0;
};

TEST_F(TableOffloads, ATableIsMadeFilledAskedAndDropped) {
  fill(50'000);
  const Response opened = call(OffloadId::table_open, "t");
  wire::TableFacts facts{};
  ASSERT_GE(opened.payload.size(), sizeof facts);
  std::memcpy(&facts, opened.payload.data(), sizeof facts);
  EXPECT_EQ(opened.header.version, table_);
  EXPECT_EQ(facts.rows, 50'000u);
  EXPECT_EQ(facts.row_bytes, schema_.row_bytes());
  // sum(price) where shop = 3
  PipelineBuilder builder;
  builder.filter(builder.binary(wire::ExpressionKind::equal, builder.column(1),
                                builder.constant(table::integer_constant(3))));
  const PipelineBuilder::AggregateOf sums[] = {{wire::Aggregate::sum, builder.column(2)},
                                               {wire::Aggregate::count_rows, wire::kNoExpression}};
  builder.group_by({}, sums);
  const auto message = builder.finish();
  ASSERT_TRUE(message);
  const Response answered = call(OffloadId::table_query, "", text_of(*message));
  ASSERT_EQ(answered.header.code, 0) << answered.payload;
  const wire::QueryNumbers numbers = numbers_of(answered);
  EXPECT_EQ(numbers.rows_read, 50'000u);
  EXPECT_EQ(numbers.rows_passed, 5'000u);
  EXPECT_EQ(numbers.rows_sent, 1u);
  const auto pipeline = table::check_pipeline(*message, schema_);
  ASSERT_TRUE(pipeline);
  const std::string row = answered.payload.substr(sizeof numbers);
  ASSERT_EQ(row.size(), pipeline->result.row_bytes());
  const auto* bytes = reinterpret_cast<const std::byte*>(row.data());
  std::int64_t sum = 0;
  for (std::int64_t id = 3; id < 50'000; id += 10) sum += id * 5;
  EXPECT_EQ(read_value(pipeline->result.column(0), bytes).number, sum);
  EXPECT_EQ(read_value(pipeline->result.column(2), bytes).number, 5'000);

  EXPECT_EQ(call(OffloadId::object_list, "").header.version, 2u);
  EXPECT_EQ(call(OffloadId::object_drop, "t").header.code, 0);
  EXPECT_EQ(call(OffloadId::table_open, "t").code(), Code::not_found);
  EXPECT_EQ(call(OffloadId::table_query, "", text_of(*message)).code(), Code::not_found);
  EXPECT_EQ(call(OffloadId::table_append, "", rows(0, 1)).code(), Code::not_found);
}

TEST_F(TableOffloads, AllRowsComeBackInChunksAsTheyWere) {
  fill(30'000);
  const Response answered = call(OffloadId::table_query, "", everything(schema_));
  ASSERT_EQ(answered.header.code, 0);
  // The fixture puts chunks in front of the answer's own payload.
  const std::size_t all = 30'000u * schema_.row_bytes();
  ASSERT_EQ(answered.payload.size(), all + sizeof(wire::QueryNumbers));
  std::string wanted = rows(0, 30'000);
  std::string came = answered.payload;
  // The numbers stand before the rows of the last message: the size of the rows gives the position.
  std::size_t at = 0;
  while (at < all && came.compare(at, schema_.row_bytes(), wanted, at, schema_.row_bytes()) == 0) {
    at += schema_.row_bytes();
  }
  wire::QueryNumbers numbers{};
  std::memcpy(&numbers, came.data() + at, sizeof numbers);
  EXPECT_EQ(numbers.rows_sent, 30'000u);
  EXPECT_EQ(numbers.bytes_sent, all);
  EXPECT_EQ(came.erase(at, sizeof numbers), wanted);
}

TEST_F(TableOffloads, WhatIsWrongIsRefusedInWords) {
  fill(10'000);
  const Response schema = call(OffloadId::table_create, "u", "no schema");
  EXPECT_EQ(schema.code(), Code::invalid_argument);
  EXPECT_EQ(call(OffloadId::table_create, "t", "").code(), Code::invalid_argument);
  EXPECT_EQ(call(OffloadId::table_create, "", "").code(), Code::invalid_argument);
  const Response pipeline = call(OffloadId::table_query, "", "no pipeline");
  EXPECT_EQ(pipeline.code(), Code::invalid_argument);
  EXPECT_GT(pipeline.payload.size(), 10u);
  EXPECT_EQ(call(OffloadId::table_query, "", "").code(), Code::invalid_argument);
  const Response half = call(OffloadId::table_append, "", rows(0, 2).substr(1));
  EXPECT_EQ(half.code(), Code::invalid_argument);
  // A decimal of more digits than the column has, in the second of three rows.
  std::string wrong = rows(0, 3);
  const std::int64_t large = 1'000'000'000'000;
  std::memcpy(wrong.data() + schema_.row_bytes() + schema_.column(2).offset, &large, sizeof large);
  const Response refused = call(OffloadId::table_append, "", wrong);
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_NE(refused.payload.find("price"), std::string::npos) << refused.payload;
  EXPECT_NE(refused.payload.find("1 wrong rows"), std::string::npos) << refused.payload;
  const Response still = call(OffloadId::table_open, "t");
  wire::TableFacts facts{};
  std::memcpy(&facts, still.payload.data(), sizeof facts);
  EXPECT_EQ(facts.rows, 10'000u);
}

TEST_F(TableOffloads, RegularExpressionsAreCompiledOnceAndRefusedInWords) {
  const auto names = *table::Schema::parse("name text(40)");
  std::string rows;
  constexpr int kRows = 3000;
  for (int i = 0; i < kRows; ++i) {
    std::vector<std::byte> row(names.row_bytes());
    write_value(names.column(0), table::Value::of_text("name" + std::to_string(i)), row.data());
    rows += text_of(row);
  }
  std::vector<std::byte> schema(names.encoded_bytes());
  names.encode(schema);
  table_ = static_cast<std::uint32_t>(
      call(OffloadId::table_create, "names", text_of(schema)).header.version);
  ASSERT_EQ(call(OffloadId::table_append, "", rows).header.code, 0);
  const auto found = [&](std::string_view pattern) {
    PipelineBuilder builder;
    builder.filter(builder.matches(builder.column(0), table::text_constant(pattern)));
    const PipelineBuilder::AggregateOf count[] = {
        {wire::Aggregate::count_rows, wire::kNoExpression}};
    builder.group_by({}, count);
    return call(OffloadId::table_query, "", text_of(*builder.finish()));
  };
  for (int i = 0; i < 2; ++i) {
    const Response answered = found("e[0-9]{1,2}$");
    ASSERT_EQ(answered.header.code, 0) << answered.payload;
    EXPECT_EQ(numbers_of(answered).rows_passed, 100u);
    EXPECT_EQ(numbers_of(answered).rows_read, std::uint64_t{kRows});
  }
  EXPECT_EQ(node_.services().part<TableServices>().regexes.numbers().hits, 1u);
  EXPECT_EQ(node_.services().part<TableServices>().regexes.numbers().misses, 1u);
  const Response refused = found("e[0-9");
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_NE(refused.payload.find("operator 1 (filter): the regular expression is wrong at 2"),
            std::string::npos)
      << refused.payload;
}

TEST_F(TableOffloads, AClientThatDoesNotReadHoldsUpNobodyAndKeepsAStage) {
  fill(200'000);
  auto& slow = node_.connect({64, 64, 1});
  wire::RequestHeader header = request_of(OffloadId::table_query, table_, 1);
  slow->post(message_of(header, "", everything(schema_)));
  slow->ring();
  node_.turns(20'000);
  EXPECT_FALSE(node_.scheduler().idle());
  EXPECT_EQ(node_.services().helpers.numbers().running, 0u);  // it rests
  EXPECT_LE(node_.services().budget.used(), std::uint64_t{1} << 20);
  EXPECT_TRUE(call(OffloadId::noop, "").answers());
  const Response other = call(OffloadId::table_query, "", everything(schema_));
  EXPECT_EQ(other.header.code, 0);
  node_.disconnect(slow);
  EXPECT_TRUE(node_.run_until_idle());
  node_.turn();
  EXPECT_TRUE(slow.ended);
  EXPECT_EQ(node_.services().budget.used(), 0u);
}

// A thousand are open: their clients read nothing until all were asked.
TEST_F(TableOffloads, SoManyQueriesRunAndTheOthersWait) {
  constexpr std::uint32_t kRowsHere = 10'000;
  constexpr std::uint32_t kReaders = 25;
  constexpr std::uint32_t kAskedByEach = 40;
  fill(kRowsHere);
  std::vector<SchedulerFixture::Client*> readers;
  for (std::uint32_t i = 0; i < kReaders; ++i) {
    readers.push_back(&node_.connect({256, 64, 1}, 100 + i));
    for (std::uint32_t tag = 0; tag < kAskedByEach; ++tag) {
      (*readers.back())
          ->post(
              message_of(request_of(OffloadId::table_query, table_, tag), "", everything(schema_)));
    }
    (*readers.back())->ring();
  }
  // All are taken, though most wait for a place, or for their clients to read.
  EXPECT_TRUE(node_.run_until([&] {
    std::uint32_t taken = 0;
    for (SchedulerFixture::Client* reader : readers) {
      if ((*reader)->flush()) (*reader)->ring();
      taken += reader->connection->in_flight;
    }
    return taken == kReaders * kAskedByEach;
  }));
  // Those that have begun wait for their clients, and have no places any more. A request whose
  // response ring was full when it was taken has not begun, and so is not open.
  const QueryLimits& queries = node_.services().part<TableServices>().queries;
  EXPECT_TRUE(node_.run_until([&] { return queries.running() == 0; }));
  EXPECT_GE(queries.opened(), QueryLimits::kRunning);
  EXPECT_TRUE(call(OffloadId::noop, "").answers());
  std::uint64_t bytes = 0;
  std::uint32_t answered = 0;
  while (answered < kReaders * kAskedByEach) {
    node_.turn();
    for (SchedulerFixture::Client* reader : readers) {
      while (const auto response = (*reader)->receive(0)) {
        ASSERT_EQ(response->header.code, 0) << response->payload;
        bytes += response->payload.size();
        if (response->answers()) ++answered;
      }
    }
  }
  EXPECT_EQ(bytes, std::uint64_t{kReaders} * kAskedByEach *
                       (kRowsHere * schema_.row_bytes() + sizeof(wire::QueryNumbers)));
  EXPECT_TRUE(node_.run_until_idle());
  EXPECT_EQ(node_.services().part<TableServices>().queries.running(), 0u);
}

// The places of those that wait for their readers are others'.
TEST_F(TableOffloads, ReadersThatTakeNothingKeepNoQueryFromRunning) {
  fill(20'000);
  std::vector<SchedulerFixture::Client*> slow;
  for (std::uint32_t i = 0; i < 2 * QueryLimits::kRunning; ++i) {
    slow.push_back(&node_.connect({64, 64, 1}, 7));
    (*slow.back())
        ->post(message_of(request_of(OffloadId::table_query, table_, 1), "", everything(schema_)));
    (*slow.back())->ring();
  }
  const auto& counts = node_.services().part<TableServices>().query_counts;
  ASSERT_TRUE(node_.run_until([&] { return counts.running >= QueryLimits::kRunning; }));
  EXPECT_EQ(call(OffloadId::table_query, "", everything(schema_)).header.code, 0);
  EXPECT_TRUE(node_.run_until(
      [&] { return node_.services().part<TableServices>().queries.running() == 0; }));
  EXPECT_LE(counts.running, QueryLimits::kBegun / 2) << "the rest waits with little memory";
  for (SchedulerFixture::Client* const client : slow) node_.disconnect(*client);
  EXPECT_TRUE(node_.run_until_idle());
  EXPECT_EQ(node_.services().part<TableServices>().queries.opened(), 0u);
}

TEST_F(TableOffloads, QueriesAreCountedOfTheirTableAndOfTheNode) {
  fill(20'000);
  const auto table = node_.catalog().find<table::Table>(table_);
  const table::QueryCounts& counts = table->query_counts();
  const table::QueryCounts& of_node = node_.services().part<TableServices>().query_counts;
  ASSERT_EQ(call(OffloadId::table_query, "", everything(schema_)).header.code, 0);
  EXPECT_EQ(counts.ended, 1u);
  EXPECT_EQ(counts.rows_read, 20'000u);
  EXPECT_EQ(counts.rows_sent, 20'000u);
  EXPECT_EQ(counts.bytes_sent, 20'000u * schema_.row_bytes());
  EXPECT_GE(counts.bytes_read, counts.bytes_sent);
  EXPECT_EQ(call(OffloadId::table_query, "", "no pipeline").code(), Code::invalid_argument);
  EXPECT_EQ(counts.failed, 1u);
  const wire::RequestHeader nowhere = request_of(OffloadId::table_query, table_ + 1, ++tag_);
  EXPECT_EQ(node_.call(client_, nowhere, "", everything(schema_)).code(), Code::not_found);
  EXPECT_EQ(counts.refused, 0u) << "of no table";
  EXPECT_EQ(of_node.refused, 1u);
  EXPECT_EQ(of_node.ended, 1u);
  EXPECT_EQ(of_node.failed, 1u);
  EXPECT_EQ(of_node.rows_read, counts.rows_read);
  EXPECT_EQ(of_node.bytes_sent, counts.bytes_sent);
}

TEST_F(TableOffloads, AQueryIsCountedInOneStateUntilItsEnd) {
  fill(200'000);
  const auto table = node_.catalog().find<table::Table>(table_);
  const table::QueryCounts& counts = table->query_counts();
  const auto ask = [this] {
    auto& client = node_.connect({64, 64, 1});
    client->post(
        message_of(request_of(OffloadId::table_query, table_, 1), "", everything(schema_)));
    client->ring();
    node_.turns(5'000);
    return &client;
  };
  // It runs, and its client does not read.
  SchedulerFixture::Client* const slow = ask();
  EXPECT_EQ(counts.running, 1u);
  EXPECT_EQ(counts.waiting, 0u);
  EXPECT_TRUE(node_.run_until([&] { return counts.rows_read != 0; })) << "before it has ended";
  EXPECT_LT(counts.rows_read, 200'000u);
  ASSERT_TRUE(node_.run_until([&] {
    return node_.services().part<TableServices>().queries.running() == 0;
  })) << "while it waits for its reader others may have its place";
  {
    auto taken = take_places();
    SchedulerFixture::Client* const second = ask();
    EXPECT_EQ(counts.waiting, 1u);
    for (int i = 0; i < 5000; ++i) {
      const PrincipalRef account = node_.services().principals.of("p" + std::to_string(i));
      if (auto query = node_.services().part<TableServices>().queries.open(account, nullptr)) {
        taken.push_back(std::move(query));
      }
    }
    EXPECT_EQ(call(OffloadId::table_query, "", everything(schema_)).code(), Code::busy);
    EXPECT_EQ(counts.refused, 1u);
    node_.disconnect(*second);
    node_.turns(5'000);
    EXPECT_EQ(counts.waiting, 0u);
    EXPECT_EQ(counts.ended, 1u);
  }
  node_.disconnect(*slow);
  ASSERT_TRUE(node_.run_until_idle());
  EXPECT_EQ(counts.running, 0u);
  EXPECT_EQ(counts.ended, 2u) << "a client that goes away is an end too";
  EXPECT_EQ(counts.failed, 0u);
}

TEST_F(TableOffloads, ADeadlineEndsAQueryWhoseClientTakesNothing) {
  fill(200'000);
  auto& slow = node_.connect({64, 64, 1});
  wire::RequestHeader header = request_of(OffloadId::table_query, table_, 1);
  constexpr std::uint32_t kMs = 5;
  header.argument = kMs << wire::kQueryTimeShift;
  const std::uint64_t begin_ns = base::monotonic_ns();
  slow->post(message_of(header, "", everything(schema_)));
  slow->ring();
  const auto& counts = node_.services().part<TableServices>().query_counts;
  ASSERT_TRUE(node_.run_until([&] { return counts.failed == 1; }));
  EXPECT_GE(base::monotonic_ns() - begin_ns, kMs * 1'000'000u);
  Response last = node_.wait(slow);
  while (!last.answers()) last = node_.wait(slow);
  EXPECT_EQ(last.code(), Code::system);
  EXPECT_NE(last.payload.find("before its deadline"), std::string::npos) << last.payload;
  EXPECT_TRUE(node_.run_until_idle());
}

TEST_F(TableOffloads, ADeadlineEndsAQueryThatWaitsForAPlace) {
  fill(10'000);
  const auto taken = take_places();
  auto& waiting = node_.connect({64, 64, 1});
  wire::RequestHeader header = request_of(OffloadId::table_query, table_, 1);
  header.argument = 2u << wire::kQueryTimeShift;
  waiting->post(message_of(header, "", everything(schema_)));
  waiting->ring();
  EXPECT_EQ(node_.wait(waiting).code(), Code::system);
  EXPECT_EQ(node_.services().part<TableServices>().query_counts.waiting, 0u);
}

TEST_F(TableOffloads, AQueryOfADevicesClientIsOnItsAccount) {
  fill(10'000);
  const auto places = take_places();
  auto& device = node_.connect({64, 64, 1}, 7);
  wire::RequestHeader header = request_of(OffloadId::table_query, table_, 7);
  header.ring |= wire::kOnBehalf;
  device->post(message_of(header, "",
                          everything(schema_) + bytes_of(PrincipalView{Right::read, "alice", ""})));
  device->ring();
  const PrincipalRef alice = node_.services().principals.of("secret alice");
  ASSERT_TRUE(node_.run_until([&] { return device.connection->in_flight == 1; }));
  node_.turns(100);
  EXPECT_EQ(alice->parts.of<QueryShare>().open, 1u);
  EXPECT_EQ(device.connection->account->parts.find<QueryShare>(), nullptr);
  node_.disconnect(device);
  EXPECT_TRUE(node_.run_until([&] { return alice->parts.of<QueryShare>().open == 0; }));
}

TEST_F(TableOffloads, ADeadlineEndsAQueryThatWaitsForAHelper) {
  fill(10'000);
  // The helper must be at it before the query comes: else it ends the late query first, and then
  // this job with a test that is over.
  std::atomic<bool> begun{false};
  std::atomic<bool> go_on{false};
  node_.services().helpers.run([&] {
    begun = true;
    begun.notify_all();
    go_on.wait(false);
  });
  begun.wait(false);
  auto& waiting = node_.connect({64, 64, 1});
  wire::RequestHeader header = request_of(OffloadId::table_query, table_, 1);
  header.argument = 1u << wire::kQueryTimeShift;
  waiting->post(message_of(header, "", everything(schema_)));
  waiting->ring();
  const table::QueryCounts& counts = node_.catalog().find<table::Table>(table_)->query_counts();
  EXPECT_TRUE(node_.run_until([&] { return counts.running == 1; }));
  const std::uint64_t late_ns = base::monotonic_ns() + 1'000'000;
  EXPECT_TRUE(node_.run_until([&] { return base::monotonic_ns() > late_ns; }));
  go_on = true;
  go_on.notify_all();
  EXPECT_EQ(node_.wait(waiting).code(), Code::system);
  EXPECT_EQ(counts.rows_read, 0u);
}

// Whatever becomes of such a request, the scheduler overwrites its message's copy.
TEST(SecretKeys, AreThoseOfTheOffloadsThatTakeKeysOfRuns) {
  EXPECT_TRUE(find_offload(static_cast<std::uint8_t>(OffloadId::table_query))->secret_key);
  for (const auto& offload : all_offloads()) {
    const bool takes_keys = offload.request_format().find("RunKeys") != std::string::npos;
    EXPECT_EQ(offload.secret_key, takes_keys) << offload.name;
  }
}

TEST_F(TableOffloads, AQueryThatWaitsForAPlaceEndsWhenItsTableIsDropped) {
  fill(10'000);
  const auto taken = take_places();
  auto& waiting = node_.connect({64, 64, 1});
  waiting->post(message_of(request_of(OffloadId::table_query, table_, 1), "", everything(schema_)));
  waiting->ring();
  node_.turns(5'000);
  ASSERT_EQ(call(OffloadId::object_drop, "t").header.code, 0);
  EXPECT_EQ(node_.wait(waiting).code(), Code::dropped);
  EXPECT_EQ(node_.services().part<TableServices>().query_counts.failed, 1u);
}

TEST_F(TableOffloads, AClientThatGoesInMidQueryLeavesNothing) {
  fill(100'000);
  for (int turns = 1; turns < 200; turns += 7) {
    auto& going = node_.connect({64, 64, 1});
    going->post(message_of(request_of(OffloadId::table_query, table_, 1), "", everything(schema_)));
    going->ring();
    node_.turns(turns);
    node_.disconnect(going);
    ASSERT_TRUE(node_.run_until_idle());
    node_.turn();
    ASSERT_TRUE(going.ended);
  }
  // A helper forgets a client a moment after its last job; only the witness's own stays.
  while (node_.services().helpers.numbers().clients != 1) std::this_thread::yield();
  EXPECT_EQ(node_.services().budget.used(), 0u);
}

TEST_F(TableOffloads, ATableThatIsDroppedEndsItsQueries) {
  fill(200'000);
  auto& reader = node_.connect({64, 64, 1});
  reader->post(message_of(request_of(OffloadId::table_query, table_, 7), "", everything(schema_)));
  reader->ring();
  node_.turns(5'000);
  ASSERT_EQ(call(OffloadId::object_drop, "t").header.code, 0);
  Response last;
  std::size_t chunks = 0;
  while (!last.answers()) {
    last = node_.wait(reader);
    ASSERT_NE(last.header.kind, 0);
    ++chunks;
  }
  EXPECT_GT(chunks, 1u);
  EXPECT_EQ(last.code(), Code::dropped);
  EXPECT_TRUE(node_.run_until_idle());
  EXPECT_EQ(node_.audit(), std::vector<std::string>{});
}

TEST_F(TableOffloads, AQueryThatIsCancelledAnswersEarly) {
  fill(200'000);
  auto& reader = node_.connect({64, 64, 1});
  reader->post(message_of(request_of(OffloadId::table_query, table_, 7), "", everything(schema_)));
  reader->ring();
  node_.turns(5'000);
  wire::RequestHeader cancel = request_of(OffloadId::cancel, 0, 8, 7);
  reader->post(message_of(cancel));
  reader->ring();
  std::uint64_t rows = 0;
  bool answered = false;
  while (!answered) {
    const Response response = node_.wait(reader);
    ASSERT_NE(response.header.kind, 0);
    if (response.header.tag == 8) continue;
    answered = response.answers();
    rows += response.payload.size() / schema_.row_bytes();
  }
  EXPECT_LT(rows, 200'000u);
  EXPECT_TRUE(node_.run_until_idle());
}

}  // namespace
}  // namespace espalier::offload
