// SPDX-License-Identifier: Apache-2.0
// Devices in a simulated world: they read the map of a host that writes, and answer their clients.
// Their turns come late, they are stopped for longer than their leases last, and they die.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "fabric/testing/seeds.hpp"
#include "tests/support/one_sided_world.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

void run_seeds(const OneSidedOptions& options, std::uint64_t usually, OneSidedCounts& counts) {
  const std::uint64_t first = seed_from_environment(1);
  fabric::Seeds seeds(scaled(usually));
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    SCOPED_TRACE(seed_text(first + i));
    ASSERT_EQ(run_one_sided(first + i, options, counts), "");
    seeds.done();
  }
  seeds.report("answers of devices", counts.device_answers);
  seeds.report("reads that the host did for devices", counts.device_relayed);
  seeds.report("turns that came late", counts.device_late_turns);
  seeds.report("turns that ended late", counts.device_late_steps);
  seeds.report("stops of devices", counts.device_stops);
  seeds.report("of these within turns", counts.device_stops_within);
  seeds.report("leases that devices lost", counts.device_leases_lost);
  seeds.report("answers of devices that had lost some", counts.device_answers_after_loss);
  seeds.report("dead devices", counts.devices_dead);
  seeds.report("torn READs", counts.torn_reads);
}

/// Whether so many are run that what happens seldom must have happened.
bool are_enough(std::uint64_t usually) { return fabric::Seeds(scaled(usually)).count() >= usually; }

// Two devices, each with two clients, and one client that reads alone.
OneSidedOptions before_devices() {
  OneSidedOptions options;
  options.clients = 1;
  options.devices = 2;
  options.reads = 200;
  options.hints = false;
  options.pauses = false;
  options.cache_bytes = 16 << 10;
  options.follows_feed = true;
  options.map = {.node_bytes = 512, .log_bytes = 64};
  return options;
}

OneSidedOptions in_bad_weather(OneSidedOptions options, bool in_order) {
  options.faults = fabric::sim::Faults::harsh();
  options.faults.reads_in_order = in_order;
  options.pauses = true;
  return options;
}

TEST(DeviceSim, AnswersAreRightInGoodWeather) {
  OneSidedCounts counts;
  run_seeds(before_devices(), 10, counts);
  EXPECT_GT(counts.device_answers, 100u);
  EXPECT_LT(counts.device_relayed, counts.device_answers / 100);  // before it has a way to read
  EXPECT_EQ(counts.device_leases_lost, 0u);
}

TEST(DeviceSim, AnswersAreRightInBadWeather) {
  for (const bool in_order : {false, true}) {
    OneSidedCounts counts;
    OneSidedOptions options = in_bad_weather(before_devices(), in_order);
    options.drops = 3;
    run_seeds(options, 10, counts);
    EXPECT_GT(counts.device_answers, 100u);
    if (!are_enough(10)) continue;
    EXPECT_GT(counts.torn_reads, 0u);
    EXPECT_GT(counts.device_relayed, 0u);
  }
}

TEST(DeviceSim, TurnsThatComeAndEndLateChangeNoAnswer) {
  for (const bool in_order : {false, true}) {
    OneSidedCounts counts;
    OneSidedOptions options = in_bad_weather(before_devices(), in_order);
    options.device_slow = true;
    run_seeds(options, 10, counts);
    EXPECT_GT(counts.device_late_turns, 100u);
    EXPECT_GT(counts.device_late_steps, 10u);
    EXPECT_GT(counts.device_answers, 100u);
  }
}

TEST(DeviceSim, ADeviceThatWasStoppedReadsAnew) {
  for (const bool in_order : {false, true}) {
    OneSidedCounts counts;
    OneSidedOptions options = in_bad_weather(before_devices(), in_order);
    options.device_slow = true;
    options.device_stops = true;
    run_seeds(options, 10, counts);
    EXPECT_GT(counts.device_stops, 0u);
    if (!are_enough(10)) continue;
    EXPECT_GT(counts.device_stops_within, 0u);
    EXPECT_GT(counts.device_leases_lost, 0u);
    EXPECT_GT(counts.device_relayed, 0u);
    EXPECT_GT(counts.device_answers_after_loss, 0u);
  }
}

TEST(DeviceSim, ADeadDeviceHoldsNothingForEver) {
  OneSidedCounts counts;
  OneSidedOptions options = in_bad_weather(before_devices(), false);
  options.device_dies = true;
  run_seeds(options, 10, counts);
  if (!are_enough(10)) return;
  EXPECT_GT(counts.devices_dead, 5u);
  EXPECT_GT(counts.dead_devices_looked_at, 0u);
}

TEST(DeviceSim, ADeviceBelievesADeadHostForAShortTime) {
  OneSidedCounts counts;
  OneSidedOptions options = in_bad_weather(before_devices(), true);
  options.device_slow = true;
  options.death = Death::process;
  options.deaths = 2;
  run_seeds(options, 10, counts);
  EXPECT_GT(counts.deaths, 0u);
  if (!are_enough(10)) return;
  EXPECT_GT(counts.device_answers_of_the_dead, 0u);
  EXPECT_GT(counts.device_engines, 0u);
}

}  // namespace
}  // namespace espalier::test
