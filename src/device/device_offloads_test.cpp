// SPDX-License-Identifier: Apache-2.0
#include "device/device_offloads.hpp"

#include <gtest/gtest.h>

#include <string>

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
    EXPECT_TRUE(made->items == nullptr || made->items == node.items) << node.name;
    EXPECT_TRUE(made->limits.map == (made->items != nullptr || made->id == wire::OffloadId::get ||
                                     made->id == wire::OffloadId::floor))
        << node.name;
  }
}

}  // namespace
}  // namespace espalier::device
