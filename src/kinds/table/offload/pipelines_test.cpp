// SPDX-License-Identifier: Apache-2.0
// Pipelines that a session keeps: whose they are, how many, and runs of any bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "engine/payload_reader.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/loaded_pipeline.hpp"
#include "kinds/table/offload/loaded_pipelines.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/table_object.hpp"
#include "kinds/table/value.hpp"

namespace espalier::offload {
namespace {

using table::PipelineBuilder;
using wire::OffloadId;

class PipelineOffloads : public testing::Test {
 protected:
  PipelineOffloads()
      : schema_(*table::Schema::parse("id i64 not null, name text(8)")),
        table_(make("t")),
        other_(make("other")) {
    std::vector<std::byte> rows(50u * schema_.row_bytes());
    for (std::int64_t i = 0; i < 50; ++i) {
      write_value(schema_.column(0), table::Value::of(i),
                  rows.data() + static_cast<std::size_t>(i) * schema_.row_bytes());
    }
    EXPECT_TRUE(table_->append(rows));
  }
  std::shared_ptr<table::Table> make(const std::string& name) {
    return *table::create_table(node_.services().catalog(), node_.services().store.pool, name,
                                schema_);
  }
  /// count(*) where id < 10 and (name is null or name <> 'x')
  static std::string pipeline() {
    PipelineBuilder builder;
    builder.filter(builder.binary(wire::ExpressionKind::less, builder.column(0),
                                  builder.constant(table::integer_constant(10))));
    builder.filter(builder.binary(wire::ExpressionKind::logical_or,
                                  builder.unary(wire::ExpressionKind::is_null, builder.column(1)),
                                  builder.binary(wire::ExpressionKind::not_equal, builder.column(1),
                                                 builder.constant(table::text_constant("x")))));
    builder.group_by({}, std::vector<PipelineBuilder::AggregateOf>{
                             {wire::Aggregate::count_rows, wire::kNoExpression}});
    return std::string(text_of(*builder.finish()));
  }
  static std::string run(std::uint64_t number, std::int64_t below, std::string_view text = "x") {
    table::RunConstants constants;
    constants.values.push_back(constant_value(table::integer_constant(below), constants.heap));
    constants.values.push_back(constant_value(table::text_constant(text), constants.heap));
    return std::string(text_of(table::encode_loaded_run(number, constants)));
  }
  Response ask(SchedulerFixture::Client& client, OffloadId offload, std::string_view payload,
               const table::Table* of = nullptr) {
    const std::uint32_t table = of == nullptr ? table_->id() : of->id();
    return node_.call(client, request_of(offload, table, ++tag_), {}, payload);
  }
  std::uint64_t load(SchedulerFixture::Client& client) {
    const Response loaded = ask(client, OffloadId::pipeline_load, pipeline());
    EXPECT_EQ(loaded.header.code, 0) << loaded.payload;
    return loaded.header.version;
  }
  /// What a run counts, or its refusal in words.
  std::string counted(SchedulerFixture::Client& client, std::string_view payload,
                      const table::Table* of = nullptr) {
    const Response answered = ask(client, OffloadId::table_query, payload, of);
    if (answered.header.code != 0) return answered.payload.substr(sizeof(std::uint32_t));
    std::int64_t count = 0;
    const std::size_t at = sizeof(wire::QueryNumbers);
    EXPECT_GE(answered.payload.size(), at + sizeof count);
    std::memcpy(&count, answered.payload.data() + at, sizeof count);
    return std::to_string(count);
  }

  SchedulerFixture node_;
  SchedulerFixture::Client& client_ = node_.connect({4096, 4096, 1});
  const table::Schema schema_;
  std::shared_ptr<table::Table> table_;
  std::shared_ptr<table::Table> other_;
  std::uint32_t tag_ = 0;
};

TEST_F(PipelineOffloads, RunWithOtherConstants) {
  const std::uint64_t number = load(client_);
  EXPECT_EQ(counted(client_, run(number, 10)), "10");
  EXPECT_EQ(counted(client_, run(number, 33, "another text")), "33");
  EXPECT_EQ(counted(client_, run(number, 0, "")), "0");
  EXPECT_EQ(counted(client_, pipeline()), "10") << "one that comes with its run";
}

TEST_F(PipelineOffloads, NumbersAreTheirSessionsAlone) {
  auto& other = node_.connect({4096, 4096, 1});
  const std::uint64_t number = load(client_);
  const std::string gone = "this session keeps no pipeline of the number ";
  EXPECT_EQ(counted(other, run(number, 10)), gone + std::to_string(number) + ": load it again");
  EXPECT_EQ(counted(client_, run(0, 10)), gone + "0: load it again");
  EXPECT_EQ(counted(client_, run(~std::uint64_t{0}, 10)),
            gone + "18446744073709551615: load it again");
  EXPECT_EQ(counted(client_, run(number, 10), other_.get()),
            "the pipeline was loaded for another table");
  // A drop by another session is of its own numbers.
  const std::string numbers(base::bytes_of(number));
  EXPECT_EQ(ask(other, OffloadId::pipeline_drop, numbers).header.version, 0u);
  EXPECT_EQ(counted(client_, run(number, 10)), "10");
  EXPECT_EQ(ask(client_, OffloadId::pipeline_drop, numbers + numbers).header.version, 1u);
  EXPECT_EQ(counted(client_, run(number, 10)), gone + std::to_string(number) + ": load it again");
  EXPECT_NE(load(client_), number) << "numbers are not given again";
}

TEST_F(PipelineOffloads, ConstantsAreThoseOfItsTypes) {
  const std::uint64_t number = load(client_);
  table::RunConstants good;
  good.values = {constant_value(table::integer_constant(1), good.heap),
                 constant_value(table::text_constant("x"), good.heap)};
  const auto refusal = [&](const table::RunConstants& constants) {
    return counted(client_, text_of(table::encode_loaded_run(number, constants)));
  };
  EXPECT_EQ(refusal(good), "1");
  table::RunConstants bad = good;
  bad.values.pop_back();
  EXPECT_EQ(refusal(bad), "the loaded pipeline has 2 constants, and the run 1");
  bad.values.assign(5, good.values[0]);
  EXPECT_EQ(refusal(bad), "the loaded pipeline has 2 constants, and the run 5");
  const std::string other_type =
      "constant 0 of the run has another type than the loaded pipeline's";
  for (const auto& constant : {table::real_constant(1), table::decimal_constant(1, 0),
                               table::null_constant(wire::ValueKind::integer)}) {
    bad = good;
    bad.values[0] = constant_value(constant, bad.heap);
    EXPECT_EQ(refusal(bad), other_type);
  }
  bad = good;
  bad.values[1].value = 1;  // behind the heap
  EXPECT_NE(refusal(bad), "1");
  bad.values[1] = good.values[1];
  bad.values[1].bytes = 2000;
  EXPECT_NE(refusal(bad), "1");
  bad.values[1] = good.values[1];
  bad.values[0].reserved = 1;
  EXPECT_NE(refusal(bad), "1");
  EXPECT_EQ(refusal(good), "1");
}

TEST_F(PipelineOffloads, RunsOfAnyBytesAreRefusedOrRun) {
  const std::uint64_t number = load(client_);
  base::Random random(base::seed_from_environment(5));
  const std::string good = run(number, 10);
  for (std::size_t bytes = 4; bytes < good.size(); ++bytes) {
    EXPECT_NE(counted(client_, good.substr(0, bytes)), "10");
  }
  EXPECT_NE(counted(client_, good + std::string(8, 0)), "10");
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    for (std::uint64_t changes = random.between(1, 3); changes != 0; --changes) {
      bytes[random.below(bytes.size())] = static_cast<char>(random());
    }
    static_cast<void>(counted(client_, bytes));
  }
  EXPECT_EQ(counted(client_, good), "10");
}

TEST_F(PipelineOffloads, WhatIsWrongIsToldWhenItIsLoaded) {
  const auto refused = [&](std::string_view payload, const table::Table* of = nullptr) {
    return ask(client_, OffloadId::pipeline_load, payload, of).header.code != 0;
  };
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused(pipeline().substr(8)));
  EXPECT_TRUE(refused(run(1, 10))) << "a run is no pipeline";
  PipelineBuilder wrong;
  wrong.filter(wrong.matches(wrong.column(1), table::text_constant("[a")));
  EXPECT_TRUE(refused(text_of(*wrong.finish())));
  EXPECT_FALSE(refused(pipeline()));
  EXPECT_FALSE(refused(pipeline(), other_.get()));
  ASSERT_TRUE(node_.services().catalog().drop<table::Table>("other"));
  EXPECT_TRUE(refused(pipeline(), other_.get()));
}

TEST_F(PipelineOffloads, ASessionKeepsSoManyAndTheyEndWithIt) {
  auto& session = node_.connect({4096, 4096, 1});
  const std::uint64_t before = node_.services().budget.used();
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < LoadedPipelines::kMost; ++i) numbers.push_back(load(session));
  const Response more = ask(session, OffloadId::pipeline_load, pipeline());
  EXPECT_EQ(more.code(), Code::too_many_participants);
  EXPECT_NE(more.payload.find("keeps 256 pipelines already"), std::string::npos);
  load(client_);
  EXPECT_GT(node_.services().budget.used(), before + 256 * pipeline().size());
  EXPECT_EQ(
      ask(session, OffloadId::pipeline_drop, text_of(std::as_bytes(std::span(numbers).first(100))))
          .header.version,
      100u);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t number = load(session);
    ASSERT_EQ(ask(session, OffloadId::pipeline_drop, base::bytes_of(number)).header.version, 1u);
  }
  node_.disconnect(session);
  ASSERT_TRUE(node_.run_until_idle());
  node_.turn();
  ASSERT_TRUE(session.ended);
  EXPECT_LT(node_.services().budget.used(), before + 2 * pipeline().size() + 1024);
}

}  // namespace
}  // namespace espalier::offload
