// SPDX-License-Identifier: Apache-2.0
// Results that a node writes into its client's memory: the same answers as by chunks, over every
// transport, and clients that make false claims, write there too, stop reading or disappear.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "client/store_impl.hpp"
#include "kinds/table/client/result_buffers.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/format/result_buffers.hpp"
#include "kinds/table/offload/table_services.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/testing/random_pipeline.hpp"
#include "kinds/table/value.hpp"
#include "node/metrics.hpp"
#include "tests/support/child.hpp"
#include "tests/support/column_pipeline.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/results_by_hand.hpp"
#include "tests/support/seed.hpp"

namespace espalier {
namespace {

using client::Incoming;
using client::RemoteRequests;
using wire::OffloadId;

constexpr std::uint64_t kResultRows = 60'000;
constexpr const char* kSchemaText = "id i64 not null, shop i32 not null, note text(12)";

std::vector<std::byte> rows_of(const table::Schema& schema, std::uint64_t count) {
  std::vector<std::byte> bytes(count * schema.row_bytes());
  for (std::uint64_t i = 0; i < count; ++i) {
    std::byte* const row = bytes.data() + i * schema.row_bytes();
    const auto id = static_cast<std::int64_t>(i);
    write_value(schema.column(0), table::Value::of(id), row);
    write_value(schema.column(1), table::Value::of(id % 700), row);
    const auto note = table::Value::of_text("note " + std::to_string(i % 11));
    write_value(schema.column(2), i % 3 == 0 ? table::Value{} : note, row);
  }
  return bytes;
}

std::vector<std::byte> everything() { return test::pipeline_of_columns(3); }

class ResultNodes : public test::NodeOverEachWay {
 protected:
  void SetUp() override {
    start();
    store_.emplace(connect());
    tables_ = client::StoreImpl::of(*store_).tables();
  }
  void fill() {
    table_ = *tables_->create("t", schema_, {});
    ASSERT_TRUE(table_->append(rows_of(schema_, kResultRows)));
    number_ = tables_->list()->at(0).number;
  }
  [[nodiscard]] bool by_fabric() const { return way_ != "unix"; }

  struct Came {
    std::vector<std::byte> rows;
    std::uint64_t buffer_bytes = 0;
    std::optional<TableError> error;
    wire::QueryNumbers numbers{};
  };
  static Came ask(client::TableImpl& table, std::span<const std::byte> pipeline,
                  std::size_t row_bytes, bool into_buffers) {
    client::RunLimits limits;
    limits.into_buffers = into_buffers;
    const auto run = table.begin(pipeline, row_bytes, limits);
    EXPECT_TRUE(run) << message(run.error());
    Came came;
    for (;;) {
      const auto some = (*run)->next();
      if (!some) came.error = some.error();
      if (!some || some->empty()) break;
      EXPECT_EQ(some->size() % row_bytes, 0u);
      came.rows.insert(came.rows.end(), some->begin(), some->end());
    }
    (*run)->end();
    came.buffer_bytes = (*run)->buffer_bytes();
    came.numbers = (*run)->numbers();
    return came;
  }

  const table::Schema schema_ = *table::Schema::parse(kSchemaText);
  std::optional<Store> store_;
  std::unique_ptr<client::TablesImpl> tables_;
  std::shared_ptr<client::TableImpl> table_;
  std::uint32_t number_ = 0;
};

INSTANTIATE_TEST_SUITE_P(By, ResultNodes, ::testing::ValuesIn(test::kWays), test::way_name);

TEST_P(ResultNodes, RowsComeIntoBuffersAsTheyCameByChunks) {
  fill();
  const auto wanted = rows_of(schema_, kResultRows);
  for (int i = 0; i < 3; ++i) {
    const Came chunks = ask(*table_, everything(), schema_.row_bytes(), false);
    const Came buffers = ask(*table_, everything(), schema_.row_bytes(), true);
    EXPECT_EQ(chunks.rows, wanted);
    EXPECT_EQ(buffers.rows, wanted);
    EXPECT_EQ(chunks.buffer_bytes, 0u);
    // All but the last stage, which comes with the answer.
    const std::uint64_t least = wanted.size() - (std::uint64_t{64} << 10);
    EXPECT_GE(buffers.buffer_bytes, by_fabric() ? least : 0);
    EXPECT_LE(buffers.buffer_bytes, by_fabric() ? wanted.size() : 0);
    EXPECT_EQ(buffers.numbers.rows_sent, kResultRows);
    EXPECT_EQ(buffers.numbers.bytes_sent, wanted.size());
    EXPECT_EQ(chunks.numbers.bytes_sent, wanted.size());
  }
}

TEST_P(ResultNodes, EveryPipelineHasTheSameAnswer) {
  const std::uint64_t seed = test::seed_from_environment(11);
  SCOPED_TRACE(test::seed_text(seed));
  base::Random random(seed);
  std::uint64_t into_buffers = 0;
  for (std::uint64_t round = 0; round < test::steps_or(6); ++round) {
    const table::Schema schema = table::random_small_schema(random);
    const auto rows = table::random_small_rows(random, schema, 20'000, round % 2 == 0 ? 0 : 1);
    const std::string name = "t" + std::to_string(round);
    const auto table = *tables_->create(name, schema, {});
    ASSERT_TRUE(table->append({rows.row(0), rows.size() * schema.row_bytes()}));
    for (int query = 0; query < 6; ++query) {
      const auto pipeline = table::random_builder(random, schema).finish();
      if (!pipeline) continue;
      const auto checked = table::check_pipeline(*pipeline, schema);
      if (!checked) continue;
      const std::size_t row_bytes = checked->result.row_bytes();
      const Came chunks = ask(*table, *pipeline, row_bytes, false);
      const Came buffers = ask(*table, *pipeline, row_bytes, true);
      EXPECT_EQ(chunks.error.has_value(), buffers.error.has_value());
      if (chunks.error && buffers.error) {
        EXPECT_EQ(message(*chunks.error), message(*buffers.error));
        continue;
      }
      EXPECT_EQ(chunks.rows, buffers.rows) << "round " << round << ", query " << query;
      into_buffers += buffers.buffer_bytes;
    }
    ASSERT_TRUE(tables_->drop(name));
  }
  EXPECT_EQ(into_buffers != 0, by_fabric());
}

TEST_P(ResultNodes, StreamsEndEarlyAndTheirBuffersServeAgain) {
  fill();
  const auto wanted = rows_of(schema_, kResultRows);
  for (int i = 0; i < 20; ++i) {
    const auto run = table_->begin(everything(), schema_.row_bytes(), {});
    ASSERT_TRUE(run) << message(run.error());
    std::size_t at = 0;
    for (int pieces = 0; pieces < i; ++pieces) {
      const auto some = (*run)->next();
      ASSERT_TRUE(some) << message(some.error());
      if (some->empty()) break;
      ASSERT_TRUE(std::equal(some->begin(), some->end(), wanted.begin() + at)) << at;
      at += some->size();
    }
    (*run)->end();
  }
  EXPECT_EQ(ask(*table_, everything(), schema_.row_bytes(), true).rows, wanted);
}

TEST_P(ResultNodes, TwoStreamsAtATimeHaveBuffersOfTheirOwn) {
  fill();
  const auto wanted = rows_of(schema_, kResultRows);
  const auto one = table_->begin(everything(), schema_.row_bytes(), {});
  const auto other = table_->begin(everything(), schema_.row_bytes(), {});
  ASSERT_TRUE(one && other);
  std::vector<std::byte> came[2];
  for (bool more = true; more;) {
    more = false;
    for (int i = 0; i < 2; ++i) {
      const auto some = (*(i == 0 ? one : other))->next();
      ASSERT_TRUE(some) << message(some.error());
      came[i].insert(came[i].end(), some->begin(), some->end());
      more = more || !some->empty();
    }
  }
  EXPECT_EQ(came[0], wanted);
  EXPECT_EQ(came[1], wanted);
}

// --- clients by hand -----------------------------------------------------------------------------

using test::ResultsByHand;

class BuffersByHand : public ResultsByHand {
 public:
  static constexpr std::uint32_t kBuffers = 2;

  explicit BuffersByHand(const std::string& address)
      : ResultsByHand(address, kBuffers, everything()) {}
};

class HostileResults : public ResultNodes {
 protected:
  void SetUp() override {
    ResultNodes::SetUp();
    fill();
  }
  /// Whether a client that is not hostile has its answer.
  void expect_others_are_served() {
    const Came came = ask(*table_, everything(), schema_.row_bytes(), true);
    EXPECT_FALSE(came.error);
    EXPECT_EQ(came.rows, rows_of(schema_, kResultRows));
    EXPECT_GT(came.buffer_bytes, 0u);
  }
  [[nodiscard]] std::uint64_t busy_queries() const {
    return node_->services().part<offload::TableServices>().query_counts.running.load() +
           node_->services().part<offload::TableServices>().query_counts.waiting.load();
  }
};
INSTANTIATE_TEST_SUITE_P(By, HostileResults, ::testing::Values("shm", "roce", "ofi", "roce_known"),
                         test::way_name);

TEST_P(HostileResults, NothingIsBelievedOfWhatAnOfferSays) {
  BuffersByHand client(address());
  const auto pipeline = everything();
  const auto query = [&](std::uint32_t argument) {
    return client.ask(OffloadId::table_query, client::text_of(pipeline), number_, argument);
  };
  ASSERT_TRUE(query(wire::kQueryIntoBuffers));
  EXPECT_EQ(query(wire::kQueryIntoBuffers)->code, Code::not_found);
  EXPECT_EQ(client.ask(OffloadId::result_return, std::string(4, '\0'))->code, Code::not_found);
  auto offer = client.good_offer();
  offer.buffers = 17;
  EXPECT_EQ(client.offer(offer)->code, Code::invalid_argument);
  EXPECT_EQ(client.ask(OffloadId::result_open, std::string(23, '\0'))->code,
            Code::invalid_argument);
  EXPECT_FALSE(client.offer(client.good_offer()));
  EXPECT_FALSE(client.offer(client.good_offer()));  // replaces the earlier ones
  EXPECT_EQ(client.ask(OffloadId::result_return, std::string(3, '\0'))->code,
            Code::invalid_argument);
  EXPECT_EQ(client.ask(OffloadId::result_return, std::string(6, '\0'))->code,
            Code::invalid_argument);
  EXPECT_EQ(client.ask(OffloadId::result_return, std::string(4, '\1'))->code,
            Code::invalid_argument);
  expect_others_are_served();
}

// A key of another session, an invalid one, and an address outside the region: the query ends, the
// session stays, and no memory is touched.
TEST_P(HostileResults, MemoryThatTheNodeMayNotWrite) {
  BuffersByHand other(address());
  const auto untouched = [](const BuffersByHand& of) {
    const std::byte* const at = of.memory().at;
    return std::all_of(at, at + BuffersByHand::kBuffers * BuffersByHand::kBufferBytes,
                       [](std::byte byte) { return byte == std::byte{0}; });
  };
  for (int wrong = 0; wrong < 4; ++wrong) {
    BuffersByHand client(address());
    auto offer = client.good_offer();
    if (wrong == 0) offer.key = other.good_offer().key, offer.base = other.good_offer().base;
    if (wrong == 1) offer.key ^= 0x10000;
    if (wrong == 2) offer.base += 8;
    if (wrong == 3) offer.buffer_bytes += 8;
    // Of those which are too long by little, the first buffer is there.
    const bool written = wrong >= 2;
    ASSERT_FALSE(client.offer(offer));
    client.begin(number_);
    // No buffer is given back, or the node could continue with the first one alone.
    while (client.next()) {
    }
    ASSERT_TRUE(client.ended_by()) << wrong;
    EXPECT_EQ(client.ended_by()->error.code, Code::invalid_argument) << wrong;
    EXPECT_NE(client.ended_by()->words.find("may not write"), std::string::npos);
    EXPECT_TRUE(written || untouched(client)) << wrong;
    EXPECT_FALSE(client.ask(OffloadId::noop, {})) << wrong;
    EXPECT_FALSE(client.offer(client.good_offer()));
    client.begin(number_);
    std::uint64_t bytes = 0;
    while (const auto place = client.next()) {
      bytes += place->bytes;
      if ((place->flags & wire::kBufferFull) != 0) client.give_back({place->buffer});
    }
    EXPECT_FALSE(client.ended_by());
    EXPECT_GT(bytes, kResultRows * schema_.row_bytes() - (std::uint64_t{64} << 10));
  }
  EXPECT_TRUE(untouched(other));
  expect_others_are_served();
}

TEST_P(HostileResults, BuffersThatAreGivenBackTwiceOrWereNeverOut) {
  BuffersByHand client(address());
  ASSERT_FALSE(client.offer(client.good_offer()));
  const auto wanted = rows_of(schema_, kResultRows);
  client.begin(number_);
  std::size_t at = 0;
  while (const auto place = client.next()) {
    client.give_back({BuffersByHand::kBuffers});
    client.give_back({~std::uint32_t{0}});
    client.give_back({place->buffer, place->buffer});
    ASSERT_TRUE(std::equal(client.at(*place), client.at(*place) + place->bytes,
                           wanted.begin() + static_cast<std::ptrdiff_t>(at)))
        << at;
    at += place->bytes;
    if ((place->flags & wire::kBufferFull) != 0) client.give_back({place->buffer});
  }
  EXPECT_FALSE(client.ended_by());
  EXPECT_GT(at, wanted.size() - (std::size_t{64} << 10));
  expect_others_are_served();
}

// It gives no buffer back, so the run cannot continue; that it takes messages changes nothing.
TEST_P(HostileResults, AReaderThatGivesNothingBackIsEnded) {
  BuffersByHand client(address());
  ASSERT_FALSE(client.offer(client.good_offer()));
  client.begin(number_);
  std::uint32_t full = 0;
  while (full < BuffersByHand::kBuffers) {
    const auto place = client.next();
    ASSERT_TRUE(place);
    if ((place->flags & wire::kBufferFull) != 0) ++full;
  }
  node_->services().reader_timeout_ns.store(0);  // what is 30 seconds else
  EXPECT_FALSE(client.next());
  ASSERT_TRUE(client.ended_by());
  EXPECT_EQ(client.ended_by()->error.code, Code::busy);
  node_->services().reader_timeout_ns.store(offload::ReaderWait::kTimeoutNs);
  EXPECT_EQ(busy_queries(), 0u);
  expect_others_are_served();
}

// The client stores into its buffers while the node does: that is its own affair.
TEST_P(HostileResults, NothingThatLiesInABufferMattersToTheNode) {
  BuffersByHand client(address());
  ASSERT_FALSE(client.offer(client.good_offer()));
  std::atomic<bool> done{false};
  std::thread scribbles([&] {
    base::Random random(5);
    const std::uint64_t words = BuffersByHand::kBuffers * BuffersByHand::kBufferBytes / 8;
    while (!done.load(std::memory_order_relaxed)) {
      base::store_shared(client.memory().at + 8 * random.below(words), random());
    }
  });
  for (int i = 0; i < 10; ++i) {
    client.begin(number_);
    std::uint64_t bytes = 0;
    while (const auto place = client.next()) {
      bytes += place->bytes;
      if ((place->flags & wire::kBufferFull) != 0) client.give_back({place->buffer});
    }
    EXPECT_FALSE(client.ended_by());
    EXPECT_GT(bytes, kResultRows * schema_.row_bytes() - (std::uint64_t{64} << 10));
  }
  done.store(true);
  scribbles.join();
  expect_others_are_served();
}

TEST_P(HostileResults, ATableThatIsDroppedInTheMiddleEndsIt) {
  // That it is dropped is seen at the next page.
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(table_->append(rows_of(schema_, kResultRows)));
  BuffersByHand client(address());
  ASSERT_FALSE(client.offer(client.good_offer()));
  client.begin(number_);
  ASSERT_TRUE(client.next());
  ASSERT_TRUE(tables_->drop("t"));
  while (const auto place = client.next()) {
    if ((place->flags & wire::kBufferFull) != 0) client.give_back({place->buffer});
  }
  ASSERT_TRUE(client.ended_by());
  EXPECT_EQ(client.ended_by()->error.code, Code::dropped);
  EXPECT_FALSE(client.ask(OffloadId::noop, {}));
}

TEST_P(HostileResults, ANodeThatStopsInTheMiddleWaitsForNobody) {
  BuffersByHand client(address());
  ASSERT_FALSE(client.offer(client.good_offer()));
  client.begin(number_);
  ASSERT_TRUE(client.next());
  table_.reset();
  tables_.reset();
  store_.reset();
  node_.reset();
}

// A hostile node's claims about buffers.
TEST_P(HostileResults, PlacesThatAreNoneAreNotRead) {
  const auto connection =
      *client::FabricConnection::open(*fabric::parse(address()), test::as_this_process());
  const auto rings = *client::ThreadRings::open(connection);
  RemoteRequests requests(*rings, 1);
  client::ResultBuffers buffers;
  constexpr std::uint32_t kBytes = client::ResultBuffers::kBufferBytes;
  constexpr std::uint32_t kLast = client::ResultBuffers::kBuffers - 1;
  EXPECT_FALSE(buffers.find({0, 0, 8, 0}));  // none was offered
  ASSERT_TRUE(buffers.offer(requests, *connection));
  ASSERT_TRUE(buffers.offer(requests, *connection));
  const auto first = buffers.find({0, 0, kBytes, 0});
  ASSERT_TRUE(first);
  const auto last = buffers.find({kLast, kBytes - 8, 8, wire::kBufferFull});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->data() + 8, first->data() + std::size_t{kBytes} * (kLast + 1));
  EXPECT_FALSE(buffers.find({kLast + 1, 0, 8, 0}));
  EXPECT_FALSE(buffers.find({~std::uint32_t{0}, 0, 8, 0}));
  EXPECT_FALSE(buffers.find({0, 0, kBytes + 1, 0}));
  EXPECT_FALSE(buffers.find({0, 8, kBytes, 0}));
  EXPECT_FALSE(buffers.find({0, kBytes + 8, 0, 0}));
  EXPECT_FALSE(buffers.find({0, ~std::uint32_t{7}, 16, 0}));
  EXPECT_FALSE(buffers.find({0, 8, ~std::uint32_t{0}, 0}));
  EXPECT_FALSE(buffers.find({0, 4, 8, 0}));
}

// --- several threads -----------------------------------------------------------------------------

using ResultNodesConcurrency = ResultNodes;
INSTANTIATE_TEST_SUITE_P(By, ResultNodesConcurrency, ::testing::Values("shm", "roce"),
                         test::way_name);

TEST_P(ResultNodesConcurrency, ThreadsReadEachItsOwnBuffers) {
  fill();
  const auto wanted = rows_of(schema_, kResultRows);
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      for (int round = 0; round < 4; ++round) {
        const Came came = ask(*table_, everything(), schema_.row_bytes(), true);
        EXPECT_FALSE(came.error) << message(*came.error);
        EXPECT_EQ(came.rows, wanted);
        EXPECT_GT(came.buffer_bytes, 0u);
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(node_->services().part<offload::TableServices>().result_buffer_bytes.load(),
            11 * wanted.size());
}

// --- a client that dies --------------------------------------------------------------------------

class KilledReaders : public ResultNodes {
 protected:
  // It is forked while this process has one thread.
  void SetUp() override {
    child_.emplace([](test::Line& line) {
      std::string address;
      if (!line.receive(address)) return 1;
      auto store = Store::connect(address);
      if (!store) return 2;
      const auto table = client::StoreImpl::of(*store).tables()->open("t");
      if (!table) return 3;
      const auto run = (*table)->begin(everything(), (*table)->schema().row_bytes(), {});
      if (!run) return 4;
      for (int i = 0; i < 3; ++i) {
        const auto some = (*run)->next();
        if (!some || some->empty() || (i == 2 && (*run)->buffer_bytes() == 0)) return 5;
      }
      line.send("streams");
      return line.receive(address) ? 0 : 6;
    });
    config_.clients.resume_seconds = 1;
    ResultNodes::SetUp();
    fill();
  }

  std::optional<test::Child> child_;
};
INSTANTIATE_TEST_SUITE_P(By, KilledReaders, ::testing::Values("shm", "roce", "ofi"),
                         test::way_name);

TEST_P(KilledReaders, LeaveNothing) {
  ASSERT_TRUE(child_->line().send(address()));
  std::string said;
  ASSERT_TRUE(child_->line().receive(said));
  EXPECT_EQ(said, "streams");
  child_->kill();
  child_->wait();
  const auto& counts = node_->services().part<offload::TableServices>().query_counts;
  // A test that fails here hangs, and the watchdog of all tests ends it.
  while (counts.running.load() + counts.waiting.load() != 0 || node_->connections() != 1) {
    std::this_thread::yield();
  }
  EXPECT_EQ(ask(*table_, everything(), schema_.row_bytes(), true).rows,
            rows_of(schema_, kResultRows));
}

}  // namespace
}  // namespace espalier
