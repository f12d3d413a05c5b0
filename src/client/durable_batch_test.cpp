// SPDX-License-Identifier: Apache-2.0
// Maps of this process whose records become durable when a test says so.
#include "client/embedded_store.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "espalier/hash_map.hpp"
#include "espalier/ranking_model.hpp"
#include "espalier/sequencer.hpp"
#include "espalier/table.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"

namespace espalier::client {
namespace {

/// Has a batch written by a thread of its own, and waits until its record is handed over.
std::future<Result<Written>> begin_recorded_batch(EmbeddedMap& map, const WriteBatch& batch,
                                                  const catalog::RecordingSink& sink) {
  const std::size_t before = sink.count();
  auto written = std::async(std::launch::async, [&] { return map.write(batch); });
  const auto is_over = [&] {
    return written.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  while (sink.count() == before && !is_over()) std::this_thread::yield();
  return written;
}

TEST(EmbeddedMap, ABatchIsToldOnceItIsDurableOrNeverWillBe) {
  auto region =
      memory::Region::reserve({.bytes_max = std::uint64_t{64} << 20, .huge_pages = false});
  ASSERT_TRUE(region);
  const auto core = std::make_shared<tree::StoreCore>(std::move(*region), 8);
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  {
    EmbeddedStore store(core, nullptr);
    const auto made = store.create_map("m", {});
    ASSERT_TRUE(made);
    auto& map = static_cast<EmbeddedMap&>(**made);
    core->catalog.record_to(&sink);
    WriteBatch batch;
    batch.put("key", "value").put("other", "value");
    auto first = begin_recorded_batch(map, batch, sink);
    sink.make_durable();
    EXPECT_TRUE(first.get());
    auto second = begin_recorded_batch(map, batch, sink);
    sink.fail_all();
    const auto lost = second.get();
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error(), catalog::kRecordLost);
    core->catalog.record_to(nullptr);
  }
}

/// A store whose records are durable by hand; in the last of its calls the log fails.
class LostRecords : public testing::Test {
 protected:
  LostRecords() {
    auto region = memory::Region::reserve({.bytes_max = kLostStoreBytes, .huge_pages = false});
    core_ = std::make_shared<tree::StoreCore>(std::move(*region), 32);
    store_.emplace(StoreImpl::handle(std::make_unique<EmbeddedStore>(core_, nullptr)));
  }
  ~LostRecords() override { core_->catalog.record_to(nullptr); }
  /// From now on there are records, all of which are durable by the next call.
  void record() { core_->catalog.record_to(&sink_); }
  /// Calls `work`, makes the records durable that it hands over, and returns its answer.
  template <class Work>
  auto durable(const Work& work) {
    auto answer = begun(work);
    sink_.make_durable();
    return answer.get();
  }
  /// The same, but the records never become durable.
  template <class Work>
  auto lost(const Work& work) {
    auto answer = begun(work);
    sink_.fail_all();
    return answer.get();
  }

  /// Waits until it has handed so many records over, or is over.
  template <class Work>
  auto begun(const Work& work, std::size_t records = 1) {
    const std::size_t before = sink_.count();
    auto answer = std::async(std::launch::async, work);
    while (sink_.count() < before + records &&
           answer.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      std::this_thread::yield();
    }
    return answer;
  }

  static constexpr std::uint64_t kLostStoreBytes = std::uint64_t{64} << 20;
  catalog::RecordingSink sink_{catalog::RecordingSink::Durable::by_hand};
  std::shared_ptr<tree::StoreCore> core_;
  std::optional<Store> store_;
};

TEST_F(LostRecords, OfPutsAreTold) {
  Map map = *store_->create_map("m");
  record();
  EXPECT_TRUE(durable([&] { return map.put("key", "value"); }));
  EXPECT_EQ(lost([&] { return map.put("key", "other"); }).error(), catalog::kRecordLost);
  EXPECT_EQ((*map.get("key"))->value, "value");
}

TEST_F(LostRecords, OfHashMapsAreTold) {
  HashMap map = *store_->create_hash_map("h");
  record();
  EXPECT_TRUE(durable([&] { return map.put("key", "value"); }));
  EXPECT_EQ(lost([&] { return map.put("key", "other"); }).error(), catalog::kRecordLost);
  EXPECT_EQ((*map.get("key"))->value, "value");
}

TEST_F(LostRecords, OfNumbersAreTold) {
  Sequencer numbers = *store_->create_sequencer("n");
  record();
  EXPECT_TRUE(durable([&] { return numbers.take(1); }));
  EXPECT_EQ(lost([&] { return numbers.take(1); }).error(), catalog::kRecordLost);
}

TEST_F(LostRecords, OfCountersAreTold) {
  record();
  EXPECT_EQ(durable([&] { return store_->sequence("c", 5); }), 0u);
  EXPECT_EQ(lost([&] { return store_->sequence("c", 5); }).error(), catalog::kRecordLost);
}

TEST_F(LostRecords, OfRowsAreTold) {
  Table table = *store_->create_table("t", *Schema::parse("a i64 not null"));
  record();
  const auto append = [&] {
    RowWriter rows = table.writer();
    EXPECT_TRUE(rows.add(std::int64_t{1}));
    return rows.commit();
  };
  EXPECT_TRUE(durable(append));
  EXPECT_EQ(lost(append).error().error, catalog::kRecordLost);
  EXPECT_EQ(*table.rows(), 1u);
}

TEST_F(LostRecords, OfMapsThatAreMadeAndDroppedAreTold) {
  record();
  EXPECT_TRUE(durable([&] { return store_->create_map("m"); }));
  EXPECT_TRUE(durable([&] { return store_->drop_map("m"); }));
  EXPECT_EQ(lost([&] { return store_->create_map("n"); }).error(), catalog::kRecordLost);
  // It is there, and may be gone after a crash.
  EXPECT_EQ(store_->open_map("n").error(), catalog::kRecordLost);
  EXPECT_EQ(store_->map_names().error(), catalog::kRecordLost);
  EXPECT_EQ(store_->open_map("m").error(), catalog::kRecordLost) << "nor is that it was dropped";
}

TEST_F(LostRecords, OfOtherObjectsAreTold) {
  record();
  EXPECT_TRUE(durable([&] { return store_->create_sequencer("n"); }));
  EXPECT_TRUE(durable([&] { return store_->create_hash_map("h"); }));
  EXPECT_TRUE(durable([&] { return store_->drop_hash_map("h"); }));
  EXPECT_EQ(lost([&] { return store_->create_sequencer("o"); }).error(), catalog::kRecordLost);
  EXPECT_EQ(store_->open_sequencer("o").error(), catalog::kRecordLost);
}

// The last of its records has weights.
TEST_F(LostRecords, OfRankingModelsAreTold) {
  embedding::RankingParts parts;
  base::Random random(3);
  parts.draw(random);
  record();
  const auto make = [&](const char* name) {
    return begun([this, name, &parts] { return store_->create_ranking_model(name, parts.file()); },
                 2);
  };
  auto kept = make("kept");
  sink_.make_durable(sink_.count() - 1);
  EXPECT_EQ(kept.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  auto again = begun([&] { return store_->create_ranking_model("kept", parts.file()); }, 0);
  EXPECT_EQ(again.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout)
      << "it tells that the other one is there";
  sink_.make_durable();
  EXPECT_TRUE(kept.get());
  EXPECT_EQ(again.get().error().error.code, Code::already_exists);
  auto gone = make("gone");
  sink_.fail_all();
  EXPECT_EQ(gone.get().error().error, catalog::kRecordLost);
  EXPECT_EQ(store_->open_ranking_model("gone").error(), catalog::kRecordLost);
  EXPECT_TRUE(store_->open_ranking_model("kept"));
}

// After the log has failed, as on a node; what was not durable is not.
TEST_F(LostRecords, WhatIsDurableIsOpened) {
  record();
  ASSERT_TRUE(durable([&] { return store_->create_map("m"); }));
  ASSERT_TRUE(durable([&] { return store_->create_hash_map("h"); }));
  ASSERT_TRUE(durable([&] { return store_->create_sequencer("n"); }));
  ASSERT_TRUE(durable([&] { return store_->create_sequencer("s"); }));
  const auto make_table = [&] {
    return store_->create_table("t", *Schema::parse("a i64 not null"));
  };
  ASSERT_TRUE(durable(make_table));
  HashMap map = *store_->open_hash_map("h");
  ASSERT_TRUE(durable([&] { return map.put("key", "value"); }));
  Sequencer sealed = *store_->open_sequencer("s");
  auto lost_seal = begun([&] { return sealed.seal(); });
  EXPECT_EQ(lost([&] { return store_->create_hash_map("lost"); }).error(), catalog::kRecordLost);
  EXPECT_EQ(lost_seal.get().error(), catalog::kRecordLost);
  EXPECT_TRUE(store_->open_map("m"));
  const auto hash = store_->open_hash_map("h");
  ASSERT_TRUE(hash);
  EXPECT_EQ((*hash->get("key"))->value, "value");
  EXPECT_TRUE(store_->open_sequencer("n"));
  EXPECT_TRUE(store_->open_table("t"));
  EXPECT_EQ(store_->open_sequencer("s").error(), catalog::kRecordLost) << "it tells of its seal";
  EXPECT_EQ(store_->open_hash_map("lost").error(), catalog::kRecordLost);
  EXPECT_EQ(store_->open_table("none").error().error, catalog::kRecordLost);
  EXPECT_EQ(store_->open_map("h").error(), catalog::kRecordLost) << "of another kind";
}

// A thread that waits for the disk pins no epoch.
TEST_F(LostRecords, WhoWaitsExposesNoEpoch) {
  Map map = *store_->create_map("m");
  record();
  bool was_idle = false;
  auto written = std::async(std::launch::async, [&] { return map.put("key", "value"); });
  while (sink_.count() == 0) std::this_thread::yield();
  const std::uint64_t deadline_ns = base::monotonic_ns() + 60'000'000'000;
  while (!was_idle && base::monotonic_ns() < deadline_ns) {
    was_idle = core_->epochs.exposed().empty();
    std::this_thread::yield();
  }
  EXPECT_TRUE(was_idle);
  sink_.make_durable();
  EXPECT_TRUE(written.get());
}

}  // namespace
}  // namespace espalier::client
