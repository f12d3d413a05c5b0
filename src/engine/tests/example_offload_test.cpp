// SPDX-License-Identifier: Apache-2.0
// The offload that docs/offloads.md shows, as it stands there.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "engine/tests/testing/scheduler_fixture.hpp"

// [docs/offloads.md]
#include <cstring>

#include "base/bytes.hpp"
#include "kinds/map/offload/walk_call.hpp"

namespace espalier::offload {

/// What a sum keeps between the steps of one request.
struct SumState {
  std::uint64_t sum = 0;
  std::uint64_t items = 0;
};

/// Takes what the walk delivers; false would end the walk.
bool add_items(Call& call, std::span<const Item> items) {
  SumState& state = call.state<SumState>();
  for (const Item& item : items) {
    std::uint64_t value = 0;
    if (item.value.size() != sizeof value) continue;
    std::memcpy(&value, item.value.data(), sizeof value);
    state.sum += value;
    ++state.items;
  }
  return true;
}

/// Called when the request comes, and again when the walk has ended.
Next sum_of_range(Call& call) {
  const Completion* const walked = ended_walk(call);
  if (walked == nullptr) {
    new_walk(call, Op::scan).high = call.payload();  // from the request's key on
    return begin_walk(call);
  }
  if (!walked->ok) return call.fail(walked->error);
  const SumState& state = call.state<SumState>();
  wire::ResponseHeader header{};
  header.version = state.items;
  header.read_version = walked->read_version;
  return call.answer(header, {base::bytes_of(state.sum)});
}

const Offload kSumOfRange{
    {.id = static_cast<wire::OffloadId>(wire::kOwnOffloadIds),
     .name = "sum_of_range",
     .format = "key: low; payload: high",
     .summary = "answers the sum of the values of 8 bytes in [low, high), and how many there are",
     .right = Right::read,
     .limits = {.map = true, .payload_bytes_max = 65535}},
    {.step = sum_of_range, .executor = &kMapWalks, .for_executor = &kTakesItems<add_items>}};

}  // namespace espalier::offload
// [docs/offloads.md]

namespace espalier::offload {
namespace {

TEST(ExampleOffload, SumsARange) {
  SchedulerFixture node({}, std::uint64_t{1} << 20, {&kSumOfRange, 1});
  auto& client = node.connect();
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::string key = "k" + std::to_string(1000 + i);
    ASSERT_TRUE(node.call(client, request_of(wire::OffloadId::put, node.map()), key, bytes_of(i))
                    .applied());
  }
  const auto sum = [&](std::string_view low, std::string_view high) {
    const Response answered = node.call(client, request_of(kSumOfRange.id, node.map()), low, high);
    EXPECT_TRUE(answered.answers());
    std::uint64_t value = 0;
    EXPECT_EQ(answered.payload.size(), sizeof value);
    std::memcpy(&value, answered.payload.data(), answered.payload.size());
    return std::pair(value, answered.header.version);
  };
  EXPECT_EQ(sum("", ""), std::pair(std::uint64_t{124'750}, std::uint64_t{500}));
  EXPECT_EQ(sum("k1010", "k1013"), std::pair(std::uint64_t{33}, std::uint64_t{3}));
  EXPECT_EQ(sum("z", ""), std::pair(std::uint64_t{0}, std::uint64_t{0}));
}

}  // namespace
}  // namespace espalier::offload
