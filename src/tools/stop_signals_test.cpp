// SPDX-License-Identifier: Apache-2.0
#include "tools/stop_signals.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

namespace espalier::tools {
namespace {

TEST(StopSignals, TellWhichCame) {
  StopSignals signals;
  ASSERT_EQ(::pthread_kill(::pthread_self(), SIGINT), 0);  // stays until it is waited for
  EXPECT_EQ(signals.wait(), "SIGINT");
}

TEST(StopSignals, AreThereWithinATimeToo) {
  StopSignals signals;
  ASSERT_EQ(::pthread_kill(::pthread_self(), SIGTERM), 0);
  EXPECT_EQ(signals.wait(std::uint64_t{3600} * 1'000'000'000), "SIGTERM");
}

TEST(StopSignals, AHangupIsToldAndDoesNotEndTheWaiting) {
  StopSignals signals(StopSignals::Hangup::waited_for);
  ASSERT_EQ(::pthread_kill(::pthread_self(), SIGHUP), 0);
  EXPECT_EQ(signals.wait(), "SIGHUP");
  ASSERT_EQ(::pthread_kill(::pthread_self(), SIGTERM), 0);
  EXPECT_EQ(signals.wait(), "SIGTERM");
  ASSERT_EQ(::pthread_kill(::pthread_self(), SIGHUP), 0);  // too late: it must not end the process
}

TEST(StopSignals, AThreadOfTheProcessMayAskForIt) {
  StopSignals signals;
  std::thread(&StopSignals::stop_this_process).join();
  EXPECT_EQ(signals.wait(), "SIGTERM");
}

TEST(StopSignals, AreNotWaitedForLongerThanOneWants) {
  StopSignals signals;
  EXPECT_EQ(signals.wait(0), "");
  ASSERT_EQ(::pthread_kill(::pthread_self(), SIGTERM), 0);  // between two waits
  EXPECT_EQ(signals.wait(0), "SIGTERM");
}

}  // namespace
}  // namespace espalier::tools
