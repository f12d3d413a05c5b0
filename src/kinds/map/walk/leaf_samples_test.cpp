// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/walk/leaf_samples.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace espalier::tree {
namespace {

constexpr std::uint32_t kEach = LeafSamples::kAnswersPerSample;

std::vector<wire::Lid> leaves_of(const LeafSamples& samples) {
  return {samples.leaves().begin(), samples.leaves().end()};
}

TEST(LeafSamples, OneAnswerOfSixtyFourIsKept) {
  static_assert(kEach == 64);
  LeafSamples samples;
  for (wire::Lid leaf = 1; leaf < kEach; ++leaf) samples.answered(leaf);
  EXPECT_TRUE(samples.leaves().empty());
  samples.answered(kEach);
  EXPECT_EQ(leaves_of(samples), std::vector<wire::Lid>{kEach});
  for (wire::Lid leaf = kEach + 1; leaf <= 3 * kEach; ++leaf) samples.answered(leaf);
  EXPECT_EQ(leaves_of(samples), (std::vector<wire::Lid>{kEach, 2 * kEach, 3 * kEach}));
}

// What was handed on does not begin the count of answers anew, so that a reader whose lease is
// renewed often counts no less than others.
TEST(LeafSamples, AnswersGoOnBeingCountedWhenSamplesAreHandedOn) {
  LeafSamples samples;
  for (std::uint32_t i = 1; i < kEach; ++i) {
    samples.answered(5);
    samples.clear();
  }
  samples.answered(7);
  EXPECT_EQ(leaves_of(samples), std::vector<wire::Lid>{7});
  samples.clear();
  EXPECT_TRUE(samples.leaves().empty());
}

TEST(LeafSamples, ThirtyTwoAreKeptAtMost) {
  static_assert(wire::kSampledLeavesMax == 32);
  LeafSamples samples;
  for (std::uint32_t i = 0; i < 100 * kEach; ++i) samples.answered(1 + i / kEach);
  ASSERT_EQ(samples.leaves().size(), wire::kSampledLeavesMax);
  for (std::uint32_t i = 0; i < wire::kSampledLeavesMax; ++i) {
    EXPECT_EQ(samples.leaves()[i], i + 1) << "those that came first";
  }
  samples.clear();
  for (std::uint32_t i = 0; i < kEach; ++i) samples.answered(9);
  EXPECT_EQ(leaves_of(samples), std::vector<wire::Lid>{9}) << "there is room again";
}

}  // namespace
}  // namespace espalier::tree
