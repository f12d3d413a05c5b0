// SPDX-License-Identifier: Apache-2.0
// Tables through a device: the host has them and runs the queries, and the device hands rows on as
// fast as each client takes them. tests/table_*_test.cpp hold the answers against those of a node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/testing/device_fixture.hpp"
#include "engine/reader_wait.hpp"
#include "espalier/query.hpp"
#include "espalier/table.hpp"

namespace espalier::device {
namespace {

using namespace literals;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 100'000;
constexpr int kStreams = 20;  // more than a connection has response rings

class DeviceTables : public DeviceFixture {
 protected:
  DeviceTables() { host_config_.memory.limit = std::uint64_t{512} << 20; }

  static Table filled(Store& store) {
    auto table =
        store.create_table("t", *espalier::Schema::parse("id i64 not null, rest char(90)"));
    EXPECT_TRUE(table) << message(table.error());
    RowWriter writer = table->writer();
    for (std::int64_t i = 0; i < kRows; ++i) writer.add(i, "rest");
    EXPECT_TRUE(writer.commit());
    return *std::move(table);
  }
  void wait_for_readers(std::uint64_t timeout_ns) {
    device_->with_node(
        [&](const node::Node* node) { node->services().reader_timeout_ns.store(timeout_ns); });
  }
  /// Streams that lie while others are taken lie for as long as that takes.
  void start_patient() {
    constexpr std::uint64_t kLongNs = 600'000'000'000;
    start();
    wait_for_readers(kLongNs);
    host_->services().reader_timeout_ns.store(kLongNs);
  }
  /// Takes all that is left of it. Returns how many rows that were.
  static std::int64_t rest_of(RowStream& stream) {
    std::int64_t rows = 0;
    for (;;) {
      auto piece = stream.next();
      EXPECT_TRUE(piece) << message(piece.error());
      if (!piece || !*piece) return rows;
      rows += static_cast<std::int64_t>((*piece)->size());
    }
  }
};

// Megabytes wait at the host, not in the device, and block no other client: neither requests for
// maps, nor small queries. As many streams run at a time as there are rings.
TEST_F(DeviceTables, AClientThatTakesNothingHoldsUpNobody) {
  start_patient();
  Store slow = connect_to_device();
  const Table table = filled(slow);
  Store other = connect_to_device();
  Map map = *other.create_map("m");
  const Table same = *other.open_table("t");
  std::vector<RowStream> streams;
  for (int i = 0; i < 5; ++i) {
    streams.push_back(*(i % 2 == 0 ? table.query().stream() : table.read_rows()));
  }
  std::int64_t taken = 0;
  for (RowStream& stream : streams) {
    taken += static_cast<std::int64_t>((*stream.next())->size());
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(map.put("key", std::to_string(i)));
    ASSERT_EQ((*map.get("key"))->value, std::to_string(i));
  }
  const auto counted = same.query().aggregate({count()}).run();
  ASSERT_TRUE(counted) << message(counted.error());
  EXPECT_EQ((*counted)[0].value(0).to_text(), std::to_string(kRows));
  for (RowStream& stream : streams) taken += rest_of(stream);
  EXPECT_EQ(taken, 5 * kRows);
}

TEST_F(DeviceTables, MoreStreamsThanRingsWaitForEachOther) {
  start_patient();
  Store store = connect_to_device();
  const Table table = filled(store);
  std::vector<Store> clients;
  std::vector<RowStream> streams;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(connect_to_device());
    streams.push_back(*clients.back().open_table("t")->read_rows());
  }
  for (RowStream& stream : streams) EXPECT_EQ(rest_of(stream), kRows);
}

// What goes away in the middle leaves its stream to others.
TEST_F(DeviceTables, StreamsOfClientsThatAreGoneAreForOthers) {
  start();
  Store store = connect_to_device();
  const Table table = filled(store);
  for (int i = 0; i < 2 * kStreams; ++i) {
    Store gone = connect_to_device();
    auto stream = gone.open_table("t")->read_rows();
    ASSERT_TRUE(stream);
    ASSERT_TRUE(stream->next());
    if (i % 2 == 0) gone = connect_to_device();  // the connection ends first
  }
  auto stream = table.query().stream();
  ASSERT_TRUE(stream);
  EXPECT_EQ(rest_of(*stream), kRows);
}

// Its answer ends with an error in words, and its stream is for others.
TEST_F(DeviceTables, AClientThatTakesNothingForTooLongLosesItsAnswer) {
  start();
  Store store = connect_to_device();
  const Table table = filled(store);
  wait_for_readers(0);  // for 30 seconds else
  auto stream = table.query().stream();
  ASSERT_TRUE(stream) << message(stream.error());
  while (host_was_asked(wire::OffloadId::cancel) == 0) std::this_thread::yield();
  std::optional<TableError> failure;
  while (!failure) {
    const auto piece = stream->next();
    if (!piece) {
      failure = piece.error();
    } else {
      ASSERT_TRUE(*piece) << "it was cut off, and this says that it is whole";
    }
  }
  EXPECT_EQ(failure->error.code, Code::busy);
  EXPECT_THAT(failure->words, HasSubstr("no row was taken"));
  wait_for_readers(offload::ReaderWait::kTimeoutNs);
  auto again = table.query().stream();
  ASSERT_TRUE(again) << message(again.error());
  EXPECT_EQ(rest_of(*again), kRows);
}

// The host knows the clients of a worker as one session, which may keep 256.
TEST_F(DeviceTables, EachClientKeepsPipelinesOfItsOwn) {
  start();
  Store first = connect_to_device();
  Store second = connect_to_device();
  const Table of_first = filled(first);
  const Table of_second = *second.open_table("t");
  std::vector<PreparedQuery> kept;
  for (int i = 0; i < 200; ++i) {
    for (const Table* const table : {&of_first, &of_second}) {
      auto prepared = table->query().where(col("id") < parameter("below", i)).prepare();
      ASSERT_TRUE(prepared) << message(prepared.error());
      kept.push_back(*std::move(prepared));
    }
  }
  for (std::size_t i = 0; i < kept.size(); i += 37) {
    EXPECT_EQ(kept[i].run()->size(), i / 2);
    EXPECT_EQ(kept[i].run({{"below", 7}})->size(), 7u);
  }
  const auto wrong = of_first.query().where(col("id") < parameter("below", 1)).prepare();
  EXPECT_TRUE(wrong);
}

TEST_F(DeviceTables, KeysAreNotHandedOn) {
  start();
  Store store = connect_to_device();
  const auto key = TableKey::parse("000102030405060708090a0b0c0d0e0f");
  ASSERT_TRUE(key);
  const auto made = store.create_table("t", *espalier::Schema::parse("id i64 not null"),
                                       {.encrypted = true, .key = *key});
  ASSERT_TRUE(made) << message(made.error());
  const auto append_to = [](const Table& table) {
    RowWriter writer = table.writer();
    for (std::int64_t i = 0; i < 1000; ++i) writer.add(i);
    return writer.commit();
  };
  // At the host all clients of a worker are one session, and reservations are a session's.
  const auto appended = append_to(*made);
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().error.code, Code::unsupported);
  EXPECT_THAT(appended.error().words, HasSubstr("ask its host"));
  Store host = connect_to_host();
  const Table at_host = *host.open_table("t", {.key = *key});
  ASSERT_TRUE(append_to(at_host));
  const auto refused = made->query().where(col("id") < 5).run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error.code, Code::unsupported);
  EXPECT_THAT(refused.error().words, HasSubstr("ask its host"));
  auto stream = made->read_rows();  // decrypted by the client
  ASSERT_TRUE(stream) << message(stream.error());
  EXPECT_EQ(rest_of(*stream), 1000);
}

TEST_F(DeviceTables, WhatIsUnderWayFailsWithTheHost) {
  start();
  Store store = connect_to_device();
  const Table table = filled(store);
  auto stream = table.query().stream();
  ASSERT_TRUE(stream);
  ASSERT_TRUE(stream->next());
  host_.reset();
  std::optional<TableError> failure;
  for (std::int64_t rows = 0; rows <= kRows && !failure;) {
    const auto piece = stream->next();
    if (!piece) {
      failure = piece.error();
    } else {
      ASSERT_TRUE(*piece) << "the rest is lost, and this says that there is none";
      rows += static_cast<std::int64_t>((*piece)->size());
    }
  }
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->error.code, Code::connection_lost);
}

}  // namespace
}  // namespace espalier::device
