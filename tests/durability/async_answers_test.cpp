// SPDX-License-Identifier: Apache-2.0
// Answers of a node whose writes are answered before they are durable: immediately, while undurable
// records are young, and never with a version that could be issued twice.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "kinds/hash/format.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/hash_store.hpp"
#include "kinds/map/write/map_core.hpp"
#include "kinds/sequencer/sequencer.hpp"
#include "kinds/table/table_object.hpp"
#include "kinds/table/testing/redo_tables.hpp"
#include "store/store_core.hpp"
#include "tests/durability/durable_scheduler.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

class AsyncAnswers : public testing::Test, public DurableScheduler {
 protected:
  AsyncAnswers() : DurableScheduler(std::uint64_t{64} << 20, Durability::async) {}
  /// A write of this object that is durable.
  void write_first(OffloadId put, std::uint32_t object) {
    post(client_, put, object, "first", "1");
    sink_.make_durable();
    EXPECT_EQ(node_.wait(client_).code(), Code::invalid);
  }
  std::uint32_t make_hash() {
    hash::HashStore& store = hash::hash_store_of(node_.catalog());
    return (*hash::create_hash_map(store, "h", {.partitions = 2}))->id();
  }
  std::uint32_t make_table() {
    return (*table::create_table(node_.catalog(), node_.services().store.pool, "t",
                                 table::append_schema()))
        ->id();
  }
  [[nodiscard]] bool is_found(OffloadId get, std::uint32_t object, std::string_view key) {
    return (call(other_, get, object, key).header.flags & wire::kFound) != 0;
  }
  /// The immediate answer of a call.
  Response answered(OffloadId offload, std::uint32_t object, std::string_view key,
                    std::string_view payload = {}, std::uint32_t argument = 0) {
    post(client_, offload, object, key, payload, argument);
    node_.turns(20);
    auto response = client_->receive(0);
    EXPECT_TRUE(response.has_value());
    return response ? *std::move(response) : Response{};
  }
};

TEST_F(AsyncAnswers, OfWritesComeAtOnce) {
  const std::uint32_t map = node_.map();
  const std::size_t before = sink_.count();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(answered(OffloadId::put, map, "b", "2").code(), Code::invalid);
  }
  EXPECT_TRUE(is_found(OffloadId::get, map, "b"));
  EXPECT_EQ(sink_.count(), before + 100);
  EXPECT_LT(sink_.mark().durable(), sink_.count());
}

TEST_F(AsyncAnswers, OfHashMapsAndTablesComeAtOnce) {
  const std::uint32_t map = make_hash();
  const std::uint32_t table = make_table();
  write_first(OffloadId::hash_put, map);
  EXPECT_EQ(answered(OffloadId::hash_put, map, "k", "2").code(), Code::invalid);
  EXPECT_TRUE(is_found(OffloadId::hash_get, map, "k"));
  const auto rows = table::rows_of_append(table::append_schema(), 1, 3);
  const std::string_view bytes(reinterpret_cast<const char*>(rows.data()), rows.size());
  post(client_, OffloadId::table_append, table, {}, bytes);
  EXPECT_EQ(node_.wait(client_).code(), Code::invalid);
  EXPECT_EQ(node_.catalog().find<table::Table>(table)->rows(), 3u);
  EXPECT_LT(sink_.mark().durable(), sink_.count());
}

// By the durability of each object, whatever its node's is.
TEST_F(AsyncAnswers, OfAnObjectComeAsItWasMade) {
  hash::HashStore& store = hash::hash_store_of(node_.catalog());
  const std::uint32_t kept =
      (*hash::create_hash_map(store, "kept", {.partitions = 2, .durability = Durability::sync}))
          ->id();
  const std::uint32_t lost =
      (*hash::create_hash_map(store, "lost", {.partitions = 2, .durability = Durability::none}))
          ->id();
  const std::uint32_t rows_lost =
      (*table::create_table(node_.catalog(), node_.services().store.pool, "rows",
                            table::append_schema(), {.durability = Durability::none}))
          ->id();
  write_first(OffloadId::hash_put, kept);
  EXPECT_EQ(answered(OffloadId::hash_put, lost, "k", "2").code(), Code::invalid);
  EXPECT_TRUE(is_found(OffloadId::hash_get, lost, "k"));
  post(client_, OffloadId::hash_put, kept, "k", "2");
  node_.turns(20);
  EXPECT_TRUE(is_silent(client_)) << "it is to be on the disk first";
  EXPECT_FALSE(is_found(OffloadId::hash_get, kept, "k"));
  now_ns += 2 * kAsyncNs;  // what is kept nowhere waits for no disk, however long that stalls
  const auto rows = table::rows_of_append(table::append_schema(), 1, 3);
  const std::string_view bytes(reinterpret_cast<const char*>(rows.data()), rows.size());
  post(other_, OffloadId::table_append, rows_lost, {}, bytes);
  EXPECT_EQ(node_.wait(other_).code(), Code::invalid);
  EXPECT_EQ(node_.catalog().find<table::Table>(rows_lost)->rows(), 3u);
  EXPECT_TRUE(is_silent(client_));
  sink_.make_durable();
  EXPECT_EQ(node_.wait(client_).code(), Code::invalid);
  sink_.fail_all();  // which concerns nothing that is kept nowhere
  EXPECT_EQ(answered(OffloadId::hash_put, lost, "k", "3").code(), Code::invalid);
  EXPECT_NE(answered(OffloadId::hash_put, kept, "k", "3").code(), Code::invalid);
}

// Batches and transactions, too: they wait for other writers, here for the end of a hold, and never
// for a disk that stalls, or that has failed.
TEST_F(AsyncAnswers, OfSeveralWritesThatAreKeptNowhereWaitForNoDisk) {
  tree::StoreCore& store = node_.services().store;
  MapOptions none;
  none.durability = Durability::none;
  const auto map = *tree::create_map(store, "cache", none);
  const auto lost = *hash::create_hash_map(hash::hash_store_of(node_.catalog()), "lost",
                                           {.partitions = 2, .durability = Durability::none});
  const wire::BatchEntry entry{0, 1, 1, static_cast<std::uint8_t>(wire::BatchKind::put), 0};
  const std::string batch = std::string(base::bytes_of(entry)) + "bv";
  MapOptions sync;
  sync.durability = Durability::sync;
  const auto kept = *tree::create_map(store, "kept", sync);
  sink_.make_durable();
  post(client_, OffloadId::put, kept->id, "stalls", "1");
  const auto expect_answers_after_holds = [&] {
    for (memory::VersionClock* const clock : {&map->clock, &lost->clock()}) {
      clock->set_time(read_now);
      now_ns += memory::ReleaseHold::kApartNs;
      const std::uint64_t hold = clock->hold();
      ASSERT_NE(hold, 0u);
      const bool is_batch = clock == &map->clock;
      if (is_batch) post(other_, OffloadId::write_batch, map->id, {}, batch, 1);
      if (!is_batch) post(other_, OffloadId::transact, 0, {}, put_of("lost", "k", "v"), 1);
      EXPECT_TRUE(is_silent(other_)) << "no reader sees it yet";
      EXPECT_TRUE(clock->end_hold(hold));
      EXPECT_EQ(node_.wait(other_).code(), Code::invalid);
    }
  };
  expect_answers_after_holds();
  EXPECT_TRUE(is_silent(client_)) << "it is to be on the disk first";
  sink_.fail_all();
  EXPECT_NE(node_.wait(client_).code(), Code::invalid);
  expect_answers_after_holds();
}

// Numbers that were returned are never returned again, and listed objects stay.
TEST_F(AsyncAnswers, OfNumbersAndOfTheCatalogueWaitForTheDisk) {
  const auto numbers = *sequencer::create_sequencer(node_.catalog(), "n", 0);
  sink_.make_durable();
  const std::uint32_t epoch = wire::kAnyEpoch;
  post(client_, OffloadId::sequencer_take, numbers->id(), {}, base::bytes_of(epoch), 2);
  node_.turns(20);
  EXPECT_TRUE(is_silent(client_));
  sink_.make_durable();
  EXPECT_EQ(node_.wait(client_).code(), Code::invalid);
  const hash::HashShape shape{2, 1, 0, 0, 1 << 20};
  post(client_, OffloadId::hash_create, 0, "made", base::bytes_of(shape));
  node_.turns(20);
  EXPECT_TRUE(is_silent(client_));
  sink_.make_durable();
  EXPECT_EQ(node_.wait(client_).code(), Code::invalid);
}

TEST_F(AsyncAnswers, WaitWhileWhatIsNotDurableIsTooOld) {
  const std::uint32_t map = node_.map();
  const std::uint32_t hash = make_hash();
  const std::uint32_t table = make_table();
  write_first(OffloadId::put, map);
  write_first(OffloadId::hash_put, hash);
  EXPECT_EQ(answered(OffloadId::put, map, "a", "1").code(), Code::invalid);
  now_ns += kAsyncNs / 16;
  EXPECT_EQ(answered(OffloadId::put, map, "b", "1").code(), Code::invalid);
  now_ns += kAsyncNs;
  const std::size_t before = sink_.count();
  const auto rows = table::rows_of_append(table::append_schema(), 1, 3);
  const std::string_view bytes(reinterpret_cast<const char*>(rows.data()), rows.size());
  post(client_, OffloadId::put, map, "c", "1");
  post(client_, OffloadId::hash_put, hash, "c", "1");
  post(client_, OffloadId::table_append, table, {}, bytes);
  post(client_, OffloadId::put, map, "d", std::string(5000, 'v'));
  node_.turns(50);
  EXPECT_TRUE(is_silent(client_));
  EXPECT_EQ(sink_.count(), before) << "nothing was done";
  EXPECT_EQ(node_.scheduler().places_taken(0), 0u);
  EXPECT_TRUE(falls_asleep(client_)) << "a stalled disk keeps a worker busy";
  EXPECT_TRUE(is_found(OffloadId::get, map, "b")) << "reads go on";
  EXPECT_FALSE(is_found(OffloadId::get, map, "c"));
  sink_.make_durable();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(node_.wait(client_).code(), Code::invalid);
  EXPECT_TRUE(is_found(OffloadId::get, map, "c"));
  EXPECT_TRUE(is_found(OffloadId::hash_get, hash, "c"));
}

TEST_F(AsyncAnswers, AreRefusedOnceTheLogHasFailed) {
  const std::uint32_t map = node_.map();
  write_first(OffloadId::put, map);
  EXPECT_EQ(answered(OffloadId::put, map, "a", "1").code(), Code::invalid);
  now_ns += kAsyncNs / 16;
  EXPECT_EQ(answered(OffloadId::put, map, "b", "1").code(), Code::invalid);
  now_ns += kAsyncNs;
  post(client_, OffloadId::put, map, "c", "1");
  EXPECT_TRUE(is_silent(client_));
  sink_.fail_all();
  EXPECT_NE(node_.wait(client_).code(), Code::invalid);
  EXPECT_FALSE(is_found(OffloadId::get, map, "c"));
  EXPECT_TRUE(is_found(OffloadId::get, map, "b")) << "it was answered, and may be lost";
}

TEST_F(AsyncAnswers, TellHowFarTheLogIs) {
  const std::uint32_t map = node_.map();
  write_first(OffloadId::put, map);
  EXPECT_EQ(answered(OffloadId::put, map, "a", "1").code(), Code::invalid);
  const std::size_t recorded = sink_.count();
  const Response now = answered(OffloadId::await_durable, 0, {});
  EXPECT_EQ(now.header.version, recorded);
  EXPECT_EQ(now.header.read_version, recorded - 1);
  post(client_, OffloadId::await_durable, 0, {}, {}, 1);
  EXPECT_TRUE(is_silent(client_));
  EXPECT_EQ(node_.scheduler().places_taken(0), 0u);
  post(other_, OffloadId::put, map, "b", "1");
  sink_.make_durable(recorded);
  const Response later = node_.wait(client_);
  EXPECT_EQ(later.header.version, recorded) << "it does not wait for what comes later";
  EXPECT_EQ(later.header.read_version, recorded);
  post(client_, OffloadId::await_durable, 0, {}, {}, 1);
  sink_.fail_all();
  EXPECT_EQ(node_.wait(client_).code(), Code::system);
}

TEST(AsyncAnswersInMemory, TellThatNothingIsKept) {
  SchedulerFixture node;
  SchedulerFixture::Client& client = node.connect();
  const Response response = node.call(client, request_of(OffloadId::await_durable, 0, 1), {}, {});
  EXPECT_EQ(response.code(), Code::unsupported);
}

}  // namespace
}  // namespace espalier::offload
