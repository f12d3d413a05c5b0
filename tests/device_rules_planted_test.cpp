// SPDX-License-Identifier: Apache-2.0
// The rules of the protocol for devices: each is broken once, and the simulated world of
// one_sided_world.hpp must detect it. All reads there are done by devices for their clients.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "engine/planted_engine_bugs.hpp"
#include "tests/support/one_sided_world.hpp"
#include "tests/support/planting.hpp"

namespace espalier::test {
namespace {

using tree::Bug;

// What is wrong in the first seed in which something is.
Wrong any_device_seed(const OneSidedOptions& options, std::uint64_t seeds) {
  OneSidedCounts counts;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Wrong wrong = run_one_sided(seed, options, counts);
    if (!wrong.empty()) return "seed " + std::to_string(seed) + ": " + wrong;
  }
  return {};
}

OneSidedOptions only_devices() {
  OneSidedOptions options;
  options.clients = 0;
  options.devices = 1;
  options.pauses = false;
  options.reads = 100;
  return options;
}

OneSidedOptions stopped() {
  OneSidedOptions options = only_devices();
  options.faults = fabric::sim::Faults::harsh();
  options.device_slow = true;
  options.device_stops = true;
  options.reads = 300;
  return options;
}

// Leases hold nothing back, so only generations reveal reuse.
OneSidedOptions devices_without_leases() {
  OneSidedOptions options = only_devices();
  options.faults.tear = 1;
  options.faults.tear_ns = {200, 30'000};
  options.keys = 6;
  options.one_in_long = 2;
  options.keeps_leases = false;
  return options;
}

// --- rule 2: one read version for each batch -----------------------------------------------------

TEST(DeviceRules, TheReadVersionOfABatchServesNoLaterOne) {
  for (const bool in_order : {false, true}) {
    OneSidedOptions options = only_devices();
    options.faults.reads_in_order = in_order;
    expect_rejected(Bug::read_version_kept, [&] { return any_device_seed(options, 2); });
  }
}

// --- rule 4: the lease is confirmed before answers leave -----------------------------------------

TEST(DeviceRules, AReadAfterTheLastByteConfirmsWhatIsAnswered) {
  expect_rejected(Bug::not_confirmed, [] { return any_device_seed(devices_without_leases(), 2); });
  expect_rejected(Bug::generation_not_confirmed,
                  [] { return any_device_seed(devices_without_leases(), 2); });
}

// It was stopped, or slow, between its last READ and the answer.
TEST(DeviceRules, ALeaseIsBelievedForAShortTime) {
  expect_rejected(Bug::belief_not_checked, [] { return any_device_seed(stopped(), 2); });
}

// It was stopped, its lease was ended meanwhile, and it learns that before it answers.
TEST(DeviceRules, ALeaseThatIsNotRenewedIsLost) {
  expect_rejected(Bug::lost_lease_kept, [] { return any_device_seed(stopped(), 2); });
}

TEST(DeviceRules, ADeadDeviceHoldsNothing) {
  OneSidedOptions options = only_devices();
  options.device_dies = true;
  expect_rejected(offload::Bug::lease_without_end, [&] { return any_device_seed(options, 3); });
}

}  // namespace
}  // namespace espalier::test
