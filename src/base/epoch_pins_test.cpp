// SPDX-License-Identifier: Apache-2.0
#include "base/epoch_pins.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace espalier::base {
namespace {

TEST(EpochPins, TheOldestIsHeldUntilItsLastPinGoes) {
  EpochPins epoch_pins;
  EXPECT_EQ(epoch_pins.oldest(), EpochPins::kNone);
  EpochPin newer = epoch_pins.pin(9);
  EpochPin older = epoch_pins.pin(5);
  {
    const EpochPin again = epoch_pins.pin(5);
    EXPECT_EQ(epoch_pins.oldest(), 5u);
  }
  EXPECT_EQ(epoch_pins.oldest(), 5u);
  older = EpochPin();
  EXPECT_EQ(epoch_pins.oldest(), 9u);
  EpochPin moved(std::move(newer));
  EXPECT_TRUE(moved);
  EXPECT_EQ(epoch_pins.oldest(), 9u);
  moved = EpochPin();
  EXPECT_EQ(epoch_pins.oldest(), EpochPins::kNone);
}

}  // namespace
}  // namespace espalier::base
