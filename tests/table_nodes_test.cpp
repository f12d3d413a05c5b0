// SPDX-License-Identifier: Apache-2.0
// Tables of a node, over every transport: the same rows and answers, and maps that answer beside
// queries.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "channel/objects.hpp"
#include "client/store_impl.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/value.hpp"
#include "node/numbers_format.hpp"
#include "tests/support/column_pipeline.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier {
namespace {

using client::TableImpl;
using table::PipelineBuilder;

constexpr std::uint64_t kTableRows = 60'000;
constexpr std::uint64_t kGroups = 700;

class TableNodes : public test::NodeOverEachWay {
 protected:
  void SetUp() override {
    start();
    store_.emplace(connect());
    tables_ = client::StoreImpl::of(*store_).tables();
    ASSERT_NE(tables_, nullptr);
  }

  std::vector<std::byte> rows(std::uint64_t first, std::uint64_t count) const {
    std::vector<std::byte> bytes(count * schema_.row_bytes());
    for (std::uint64_t i = 0; i < count; ++i) {
      std::byte* const row = bytes.data() + i * schema_.row_bytes();
      const auto id = static_cast<std::int64_t>(first + i);
      write_value(schema_.column(0), table::Value::of(id), row);
      write_value(schema_.column(1), table::Value::of(id % std::int64_t{kGroups}), row);
      if (id % 3 != 0) {
        write_value(schema_.column(2), table::Value::of_text("note " + std::to_string(id % 11)),
                    row);
      } else {
        write_value(schema_.column(2), table::Value{}, row);
      }
    }
    return bytes;
  }
  std::shared_ptr<TableImpl> filled() {
    auto made = tables_->create("t", schema_, {});
    EXPECT_TRUE(made) << message(made.error());
    for (std::uint64_t i = 0; i < kTableRows; i += 15'000) {
      const auto appended = (*made)->append(rows(i, 15'000));
      EXPECT_TRUE(appended) << message(appended.error());
      EXPECT_EQ(*appended, i);
    }
    return *tables_->open("t");
  }
  static std::vector<std::byte> everything() { return test::pipeline_of_columns(3); }
  /// count(*) and sum(id) of each group.
  std::vector<std::byte> by_group() const {
    PipelineBuilder builder;
    const PipelineBuilder::NodeId keys[] = {builder.column(1)};
    const PipelineBuilder::AggregateOf aggregates[] = {
        {wire::Aggregate::count_rows, wire::kNoExpression},
        {wire::Aggregate::sum, builder.column(0)}};
    builder.group_by(keys, aggregates);
    return *builder.finish();
  }

  const table::Schema schema_ =
      *table::Schema::parse("id i64 not null, shop i32 not null, note text(12)");
  std::optional<Store> store_;
  std::unique_ptr<client::TablesImpl> tables_;
};

INSTANTIATE_TEST_SUITE_P(By, TableNodes, ::testing::ValuesIn(test::kWays), test::way_name);
INSTANTIATE_TEST_SUITE_P(Device, TableNodes, ::testing::Values("device"), test::way_name);

TEST_P(TableNodes, RowsComeBackAsTheyWere) {
  const auto filled_table = filled();
  TableImpl& table = *filled_table;
  EXPECT_EQ(table.facts()->rows, kTableRows);
  EXPECT_EQ(table.schema(), schema_);
  std::vector<std::byte> came;
  const auto numbers =
      table.run(everything(), schema_.row_bytes(), [&](std::span<const std::byte> some) {
        came.insert(came.end(), some.begin(), some.end());
        return true;
      });
  ASSERT_TRUE(numbers) << message(numbers.error());
  EXPECT_EQ(numbers->rows_sent, kTableRows);
  EXPECT_EQ(numbers->bytes_sent, came.size());
  EXPECT_EQ(came, rows(0, kTableRows));
  // A sink that returns false ends the query early.
  std::size_t calls = 0;
  const auto cut = table.run(everything(), schema_.row_bytes(),
                             [&](std::span<const std::byte>) { return ++calls < 3; });
  ASSERT_TRUE(cut) << message(cut.error());
  EXPECT_EQ(calls, 3u);
}

TEST_P(TableNodes, GroupsAreCountedBesideTheMemory) {
  const auto table = filled();
  const auto message_bytes = by_group();
  const auto pipeline = table::check_pipeline(message_bytes, schema_);
  ASSERT_TRUE(pipeline);
  std::vector<bool> seen(kGroups);
  const std::size_t row_bytes = pipeline->result.row_bytes();
  const auto numbers = table->run(message_bytes, row_bytes, [&](std::span<const std::byte> some) {
    for (; !some.empty(); some = some.subspan(row_bytes)) {
      const auto read = [&](std::size_t column) {
        return static_cast<std::int64_t>(
            read_value(pipeline->result.column(column), some.data()).number);
      };
      const auto group = static_cast<std::uint64_t>(read(0));
      EXPECT_LT(group, kGroups);
      EXPECT_FALSE(seen[group]);
      seen[group] = true;
      std::int64_t count = 0;
      std::int64_t sum = 0;
      for (std::uint64_t id = group; id < kTableRows; id += kGroups) {
        ++count;
        sum += static_cast<std::int64_t>(id);
      }
      EXPECT_EQ(read(1), count);
      EXPECT_EQ(read(2), sum);
    }
    return true;
  });
  ASSERT_TRUE(numbers) << message(numbers.error());
  EXPECT_EQ(numbers->rows_sent, kGroups);
  EXPECT_LT(numbers->bytes_sent, table->facts()->memory_bytes / 20);
}

// Over each transport a name belongs to one object, and the node lists all kinds.
TEST_P(TableNodes, ShareNamesListAndNumbersWithMaps) {
  const auto table = filled();
  const client::TableInfo info = tables_->list()->at(0);
  constexpr auto kMap = static_cast<std::uint32_t>(ObjectKind::map);
  constexpr auto kTable = static_cast<std::uint32_t>(ObjectKind::table);
  EXPECT_EQ(store_->create_map("t").error(), (Error{Code::already_exists, 0, kTable}));
  EXPECT_EQ(store_->open_map("t").error(), (Error{Code::wrong_kind, 0, kTable}));
  EXPECT_EQ(store_->drop_map("t").error(), (Error{Code::wrong_kind, 0, kTable}));
  EXPECT_EQ(tables_->create("default", schema_, {}).error().error,
            (Error{Code::already_exists, 0, kMap}));
  EXPECT_EQ(tables_->open("default").error().error, (Error{Code::wrong_kind, 0, kMap}));
  EXPECT_EQ(tables_->drop("default").error().error, (Error{Code::wrong_kind, 0, kMap}));
  EXPECT_EQ(*store_->map_names(), std::vector<std::string>{"default"});
  const auto objects = channel::list(*client::StoreImpl::of(*store_).channel());
  ASSERT_TRUE(objects) << message(objects.error());
  ASSERT_EQ(objects->size(), 2u);
  EXPECT_EQ((*objects)[0].kind, ObjectKind::map);
  EXPECT_EQ((*objects)[1].kind, ObjectKind::table);
  EXPECT_EQ((*objects)[1].id, info.number);
  EXPECT_EQ((*objects)[1].numbers.entries, kTableRows);
  EXPECT_EQ((*objects)[1].numbers.memory_bytes, info.facts.memory_bytes);
  wire::SamplesWanted wanted{};
  wanted.objects_max = 2;
  const auto sampled = channel::samples(*client::StoreImpl::of(*store_).channel(), wanted);
  ASSERT_TRUE(sampled) << message(sampled.error());
  EXPECT_EQ(sampled->count, 2u);
  ASSERT_EQ(sampled->objects.size(), 2u);
  EXPECT_EQ(sampled->objects[0].name, "t") << "which takes more memory";
  EXPECT_EQ(sampled->objects[0].id, info.number);
  EXPECT_EQ(sampled->objects[0].samples[0].name, "rows");
  EXPECT_EQ(sampled->objects[0].samples[0].value, kTableRows);
  ASSERT_TRUE(table->run(everything(), schema_.row_bytes(),
                         [](std::span<const std::byte>) { return true; }));
  const auto after = channel::samples(*client::StoreImpl::of(*store_).channel(), wanted, "t");
  ASSERT_TRUE(after && after->objects.size() == 1);
  EXPECT_EQ(wire::sample_value(after->objects[0], "queries_ended"), 1u);
  EXPECT_EQ(wire::sample_value(after->objects[0], "sent_rows"), kTableRows);
  const auto bytes = client::StoreImpl::of(*store_).node_numbers();
  ASSERT_TRUE(bytes) << message(bytes.error());
  const auto numbers = node::decode(*bytes);
  ASSERT_TRUE(numbers);
  if (std::string_view(GetParam()) == "device") {  // whose numbers are its own
    EXPECT_EQ(numbers->value("objects", "table"), 0u);
    return;
  }
  EXPECT_EQ(numbers->value("objects", "table"), 1u);
  EXPECT_EQ(numbers->value("queries_ended"), 1u);
  EXPECT_GE(numbers->value("helper_threads"), 1u);
  EXPECT_GE(numbers->value("helper_steps"), 5u);  // four appends and a query
  EXPECT_GT(numbers->value("helper_busy_nanoseconds"), 0u);
  ASSERT_TRUE(tables_->drop("t"));
  ASSERT_TRUE(store_->create_map("t"));
}

using TableNodesConcurrency = TableNodes;
INSTANTIATE_TEST_SUITE_P(By, TableNodesConcurrency, ::testing::Values("unix"), test::way_name);

TEST_P(TableNodesConcurrency, MapsAnswerAndRowsComeBesideQueries) {
  const auto table = filled();
  std::atomic<bool> done{false};
  std::thread appends([&] {
    Store store = connect();
    const auto same = *client::StoreImpl::of(store).tables()->open("t");
    for (std::uint64_t i = kTableRows; i < 2 * kTableRows && !done.load(); i += 1'000) {
      EXPECT_TRUE(same->append(rows(i, 1'000)));
    }
  });
  std::thread gets([&] {
    Store store = connect();
    Map map = *store.open_map("default");
    while (!done.load()) {
      EXPECT_TRUE(map.put("k", "v"));
      EXPECT_EQ(map.get("k")->value().value, "v");
    }
  });
  std::uint64_t last = kTableRows;
  for (int i = 0; i < 6; ++i) {
    std::uint64_t count = 0;
    const auto numbers =
        table->run(everything(), schema_.row_bytes(), [&](std::span<const std::byte> some) {
          count += some.size() / schema_.row_bytes();
          return true;
        });
    ASSERT_TRUE(numbers) << message(numbers.error());
    EXPECT_GE(count, last);  // whole appends, and none that was seen disappears
    EXPECT_EQ(count % 1'000, 0u);
    last = count;
  }
  done.store(true);
  appends.join();
  gets.join();
}

}  // namespace
}  // namespace espalier
