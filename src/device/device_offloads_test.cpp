// SPDX-License-Identifier: Apache-2.0
#include "device/device_offloads.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>

#include "channel/device/host_posts.hpp"
#include "engine/call.hpp"

namespace espalier::device {
namespace {

TEST(DeviceOffloads, EachOffloadOfANodeHasOne) {
  const DeviceOffloads device("shm:/host");
  for (const offload::Offload& node : offload::all_offloads()) {
    const offload::Offload* const made = device.table()[static_cast<std::uint8_t>(node.id)];
    ASSERT_NE(made, nullptr) << node.name;
    EXPECT_EQ(made->id, node.id);
    EXPECT_EQ(made->name, node.name);
    EXPECT_NE(made->step, nullptr);
    // Only walks deliver items, and only what streams can be cancelled.
    const bool posts = made->executor == &kHostPosts;
    EXPECT_TRUE(posts || made->for_executor == nullptr || made->for_executor == node.for_executor)
        << node.name;
    EXPECT_TRUE(made->limits.map ==
                (!posts && (made->for_executor != nullptr || made->id == wire::OffloadId::get ||
                            made->id == wire::OffloadId::floor)))
        << node.name;
    const bool by_host =
        node.at_device == wire::AtDevice::relayed || node.at_device == wire::AtDevice::by_kind;
    EXPECT_EQ(posts, by_host) << node.name;
  }
}

constexpr auto kOwn = static_cast<wire::OffloadId>(wire::kOwnOffloadIds);

offload::Next nothing(offload::Call& call) { return call.answer({}); }
void cancel_nothing(offload::Call&) {}

offload::Offload own_call(wire::AtDevice at_device) {
  return {{.id = kOwn,
           .name = "own",
           .summary = "answers",
           .right = offload::Right::read,
           .at_device = at_device},
          {.step = nothing}};
}

TEST(DeviceOffloads, AKindOfAProgramSaysWhatADeviceDoes) {
  const offload::Offload by_kind = own_call(wire::AtDevice::by_kind);
  const std::span<const offload::Offload> calls(&by_kind, 1);
  const offload::Kind kind{
      .name = "own", .calls = {&calls, 1}, .serve_at_device = [](auto& made, const auto& node) {
        EXPECT_EQ(made.id, kOwn);
        EXPECT_EQ(node.at_device, wire::AtDevice::by_kind);
        made.cancel = cancel_nothing;
        made.step = nothing;
      }};
  const DeviceOffloads device("shm:/host", {&kind, 1});
  const offload::Offload* const made = device.table()[wire::kOwnOffloadIds];
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->step, &nothing);
  EXPECT_EQ(made->cancel, &cancel_nothing);
}

TEST(DeviceOffloads, ACallOfAProgramIsRefusedUnlessItsRowSaysOtherwise) {
  for (const auto& [at_device, same] :
       {std::pair(wire::AtDevice::here, true), std::pair(wire::AtDevice::relayed, false),
        std::pair(wire::AtDevice::refused, false)}) {
    const offload::Offload own = own_call(at_device);
    const std::span<const offload::Offload> calls(&own, 1);
    const offload::Kind kind{.name = "own", .calls = {&calls, 1}};
    const DeviceOffloads device("shm:/host", {&kind, 1});
    ASSERT_NE(device.table()[wire::kOwnOffloadIds], nullptr);
    EXPECT_EQ(device.table()[wire::kOwnOffloadIds]->step == &nothing, same);
  }
}

TEST(DeviceOffloadsDeathTest, ACallOfAProgramTakesNoNumberOfTheProtocols) {
  offload::Offload own = own_call(wire::AtDevice::here);
  own.id = wire::OffloadId::get;
  const std::span<const offload::Offload> calls(&own, 1);
  const offload::Kind kind{.name = "own", .calls = {&calls, 1}};
  EXPECT_DEATH(DeviceOffloads("shm:/host", {&kind, 1}), "kOwnOffloadIds");
}

}  // namespace
}  // namespace espalier::device
