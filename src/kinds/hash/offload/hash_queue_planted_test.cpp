// SPDX-License-Identifier: Apache-2.0
// An answer that leaves a scheduler's queue before its release is noticed.
#include <gtest/gtest.h>

#include <string>

#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/hash/hash_map.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint32_t kWrites = 10;

/// Another thread has taken a version and is not done: writes in the queue begin, and none may be
/// answered. Returns what is wrong.
std::string answers_wait_for_their_release() {
  SchedulerFixture node;
  const auto map =
      hash::create_hash_map(hash::hash_store_of(node.catalog()), "h", {.partitions = 2}).value();
  SchedulerClient& client = node.connect({256, 256, 1});
  const std::uint64_t taken = map->clock().take();
  for (std::uint32_t i = 0; i < kWrites; ++i) {
    const auto header = request_of(wire::OffloadId::hash_put, map->id(), i);
    client->post(message_of(header, std::to_string(i), "v"));
  }
  client->ring();
  const bool begun = node.run_until([&] { return map->clock().taken() == taken + kWrites; });
  node.turns(5);
  const bool early = client->receive(0).has_value();
  map->clock().done(taken);
  if (!node.run_until_idle()) return "what is released is not answered";
  std::uint32_t later = 0;
  while (client->receive(0)) ++later;
  if (!begun) return "they do not begin";
  if (early) return "a write was answered before its release";
  return later == kWrites ? "" : "a write was not answered";
}

TEST(HashQueueRules, AnAnswerThatLeavesBeforeItsReleaseIsNoticed) {
  EXPECT_EQ(answers_wait_for_their_release(), "");
  {
    const base::Planted planted(hash::Bug::acknowledge_before_release);
    EXPECT_EQ(answers_wait_for_their_release(), "a write was answered before its release");
  }
  EXPECT_EQ(answers_wait_for_their_release(), "");
}

}  // namespace
}  // namespace espalier::offload
