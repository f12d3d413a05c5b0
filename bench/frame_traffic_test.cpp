// SPDX-License-Identifier: Apache-2.0
#include "bench/frame_traffic.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/temporary_folder.hpp"
#include "bench/map_session.hpp"
#include "dataplane/installed_function.hpp"
#include "dataplane/memif_switch.hpp"

namespace espalier::bench {
namespace {

class CountsPlaces final : public FrameCheck {
 public:
  CountsPlaces(const dataplane::IndexTables& tables, const FrameSet& frames)
      : tables_(tables), frames_(frames) {}
  void leaves(std::size_t place) override {
    EXPECT_LT(place, FrameSet::kFrames);
    ++left;
  }
  bool may_be(std::size_t place, std::uint64_t address) override {
    return dataplane::find(tables_, FrameSet::address_in(frames_.at(place))).address == address;
  }
  std::uint64_t left = 0;

 private:
  const dataplane::IndexTables& tables_;
  const FrameSet& frames_;
};

// A switch with tables, on a thread of its own.
class FrameTrafficTest : public testing::Test {
 protected:
  FrameTrafficTest() : links_(path("node")) {
    dataplane::PacketFunction tables;
    tables.add(kRankKeys, tables_);
    function_.install(tables);
    switch_ = value_or_throw(
        dataplane::MemifSwitch::open({path("clients"), path("node")}, function_), "no switch");
    links_.connect(path("clients"), [this] { switch_->poll(); });
    forwarding_ = std::thread([this] {
      while (!ends_.load()) switch_->poll();
    });
  }
  ~FrameTrafficTest() override {
    ends_.store(true);
    if (forwarding_.joinable()) forwarding_.join();
  }
  [[nodiscard]] dataplane::IndexTables compile(std::size_t ranges) const {
    return dataplane::compile(keys_.tree().tree, {.ranges = ranges, .sets = 0}).tables;
  }
  TrafficCount count(FrameCheck& check, std::uint64_t frames) {
    FrameTraffic traffic(links_, frames_, check);
    while (traffic.received() < frames) std::this_thread::yield();
    return traffic.stop();
  }
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }

  const RankedKeys keys_{2000, 1};
  const FrameSet frames_{ranked_numbers(keys_, 1), kRankKeys.keyed};
  const dataplane::IndexTables tables_ = compile(200);
  base::TemporaryFolder folder_;
  dataplane::InstalledFunction function_;
  FrameLinks links_;
  std::unique_ptr<dataplane::MemifSwitch> switch_;
  std::atomic<bool> ends_{false};
  std::thread forwarding_;
};

TEST_F(FrameTrafficTest, AllFramesComeWhereTheTablesLead) {
  CountsPlaces check(tables_, frames_);
  const TrafficCount came = count(check, 10'000);
  EXPECT_GE(came.frames, 10'000u);
  EXPECT_GE(check.left, came.frames);
  EXPECT_EQ(came.dropped, 0u);
  EXPECT_EQ(came.misrouted, 0u);
  EXPECT_GT(came.per_second, 0);
}

TEST_F(FrameTrafficTest, FramesThatGoElsewhereAreCounted) {
  const dataplane::IndexTables others = compile(20);
  CountsPlaces check(others, frames_);
  const TrafficCount came = count(check, 5'000);
  EXPECT_GT(came.misrouted, 0u);
  EXPECT_LE(came.misrouted, came.frames);
  EXPECT_EQ(came.dropped, 0u);
}

TEST_F(FrameTrafficTest, FramesThatNobodyRedirectsAreCounted) {
  function_.install({});
  CountsPlaces check(tables_, frames_);
  const TrafficCount came = count(check, 5'000);
  EXPECT_EQ(came.misrouted, came.frames);
}

// An early frame shows which ones before it were lost.
TEST_F(FrameTrafficTest, FramesThatAreLostAreCounted) {
  CountsPlaces check(tables_, frames_);
  ends_.store(true);
  forwarding_.join();
  ASSERT_TRUE(links_.send(frames_.at(5)));  // as if the five before had been lost
  links_.publish();
  ends_.store(false);
  forwarding_ = std::thread([this] {
    while (!ends_.load()) switch_->poll();
  });
  const TrafficCount came = count(check, 5'000);
  EXPECT_EQ(came.dropped, 5u);
}

}  // namespace
}  // namespace espalier::bench
