// SPDX-License-Identifier: Apache-2.0
// Devices in a simulated world: they read the map of a host that writes, and answer their clients.
// Their turns are delayed, they are stopped for longer than their leases last, and they crash.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/one_sided_seeds.hpp"

namespace espalier::test {
namespace {

constexpr SeedReport kDeviceReports[] = {
    {"answers of devices", &OneSidedCounts::device_answers},
    {"reads that the host did for devices", &OneSidedCounts::device_relayed},
    {"turns that came late", &OneSidedCounts::device_late_turns},
    {"turns that ended late", &OneSidedCounts::device_late_steps},
    {"stops of devices", &OneSidedCounts::device_stops},
    {"of these within turns", &OneSidedCounts::device_stops_within},
    {"leases that devices lost", &OneSidedCounts::device_leases_lost},
    {"answers of devices that had lost some", &OneSidedCounts::device_answers_after_loss},
    {"dead devices", &OneSidedCounts::devices_dead},
    {"torn READs", &OneSidedCounts::torn_reads},
};

void run_device_seeds(
    const OneSidedOptions& options, std::uint64_t usually, OneSidedCounts& counts,
    const SeldomHappened& all_happened = [](const auto&) { return true; }) {
  run_one_sided_seeds(options, usually, counts, kDeviceReports, all_happened);
}

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
  run_device_seeds(before_devices(), 10, counts);
  EXPECT_GT(counts.device_answers, 100u);
  EXPECT_LT(counts.device_relayed, counts.device_answers / 100);  // before it can read
  EXPECT_EQ(counts.device_leases_lost, 0u);
}

TEST(DeviceSim, AnswersAreRightInBadWeather) {
  for (const bool in_order : {false, true}) {
    OneSidedCounts counts;
    OneSidedOptions options = in_bad_weather(before_devices(), in_order);
    options.drops = 3;
    run_device_seeds(options, 10, counts, [](const OneSidedCounts& of) {
      return of.torn_reads != 0 && of.device_relayed != 0;
    });
    EXPECT_GT(counts.device_answers, 100u);
    EXPECT_GT(counts.torn_reads, 0u);
    EXPECT_GT(counts.device_relayed, 0u);
  }
}

TEST(DeviceSim, TurnsThatComeAndEndLateChangeNoAnswer) {
  for (const bool in_order : {false, true}) {
    OneSidedCounts counts;
    OneSidedOptions options = in_bad_weather(before_devices(), in_order);
    options.device_slow = true;
    run_device_seeds(options, 10, counts);
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
    run_device_seeds(options, 10, counts, [](const OneSidedCounts& of) {
      return of.device_stops_within != 0 && of.device_leases_lost != 0 && of.device_relayed != 0 &&
             of.device_answers_after_loss != 0;
    });
    EXPECT_GT(counts.device_stops, 0u);
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
  run_device_seeds(options, 10, counts, [](const OneSidedCounts& of) {
    return of.devices_dead > 5 && of.dead_devices_looked_at != 0;
  });
  EXPECT_GT(counts.devices_dead, 5u);
  EXPECT_GT(counts.dead_devices_looked_at, 0u);
}

TEST(DeviceSim, ADeviceBelievesADeadHostForAShortTime) {
  OneSidedCounts counts;
  OneSidedOptions options = in_bad_weather(before_devices(), true);
  options.device_slow = true;
  options.death = Death::process;
  options.deaths = 2;
  run_device_seeds(options, 10, counts, [](const OneSidedCounts& of) {
    return of.device_answers_of_the_dead != 0 && of.device_engines != 0;
  });
  EXPECT_GT(counts.deaths, 0u);
  EXPECT_GT(counts.device_answers_of_the_dead, 0u);
  EXPECT_GT(counts.device_engines, 0u);
}

}  // namespace
}  // namespace espalier::test
