// SPDX-License-Identifier: Apache-2.0
#include "node/checkpoint_thread.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "base/clock.hpp"
#include "engine/services.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "kinds/sequencer/counters.hpp"
#include "log/testing/small_log.hpp"

namespace espalier::node {
namespace {

/// Waits until it is so, and no longer than a minute. Returns whether it is.
template <class Is>
bool comes(Is is) {
  const std::uint64_t deadline_ns = base::monotonic_ns() + 60'000'000'000;
  while (!is()) {
    if (base::monotonic_ns() > deadline_ns) return false;
    std::this_thread::yield();
  }
  return true;
}

/// A store whose log soon is at its bound.
struct CheckpointThreadConcurrency : ::testing::Test {
  CheckpointThreadConcurrency() {
    log::LogOptions options = log::small_options();
    options.writer.segments_max = 2;
    options.threads = true;
    auto opened = log::Log::open(
        folder, options, [](std::uint64_t, std::span<const std::byte>) { return Result<void>(); });
    EXPECT_TRUE(opened) << log::message(opened.error());
    log = std::move(*opened);
    core.catalog.record_to(&log->writer());
  }
  Result<std::uint64_t> take() {
    return core.parts.of<sequencer::Counters>().take("counter", 1, &log->writer());
  }
  void reach_bound() {
    ASSERT_TRUE(comes([this] {
      static_cast<void>(take());
      return log->writer().is_at_bound();
    }));
    // So that the log needs nothing more of the disk.
    ASSERT_TRUE(comes([this] { return log->writer().durable() == log->writer().handed_over(); }));
    EXPECT_EQ(take().error().code, Code::busy);
  }
  CheckpointThread::Terms terms() {
    return {.of = {services, {}, folder, log::kSomeNode, log->writer()},
            .log_bytes = std::uint64_t{1} << 40,
            .again_bytes = std::uint64_t{1} << 40,
            .again_after = std::chrono::milliseconds(1)};
  }

  log::FaultyFolder folder{1};
  std::unique_ptr<log::Log> log;
  tree::StoreCore core = tree::make_store();
  offload::Services services{core, std::uint64_t{64} << 20};
};

TEST_F(CheckpointThreadConcurrency, MakesOneWhereTheLogIsAtItsBound) {
  const CheckpointThread checkpoints(terms());
  ASSERT_TRUE(comes([&] {
    static_cast<void>(take());
    return checkpoints.counts().finished != 0;
  }));
  EXPECT_TRUE(comes([&] { return take().has_value(); }));
}

// Nothing is written any more, so only time brings the next one.
TEST_F(CheckpointThreadConcurrency, TriesAgainWhereWritesWaitForIt) {
  reach_bound();
  folder.set({.bytes_max = 1});
  const CheckpointThread checkpoints(terms());
  ASSERT_TRUE(comes([&] { return checkpoints.counts().failed > 2; }));
  EXPECT_EQ(take().error().code, Code::busy);
  folder.set({});
  ASSERT_TRUE(comes([&] { return checkpoints.counts().finished != 0; }));
  EXPECT_TRUE(comes([&] { return take().has_value(); }));
}

}  // namespace
}  // namespace espalier::node
