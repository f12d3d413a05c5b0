// SPDX-License-Identifier: Apache-2.0
// Maps of this process whose records become durable when a test says so.
#include "client/embedded_store.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "catalog/testing/recording_sink.hpp"

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

}  // namespace
}  // namespace espalier::client
