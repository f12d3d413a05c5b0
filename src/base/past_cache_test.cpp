// SPDX-License-Identifier: Apache-2.0
#include "base/past_cache.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"

namespace espalier::base {
namespace {

// All lengths around words, vectors and lines, from and to any place in a line.
TEST(PastCache, StoresItsBytesAndNoOthers) {
  const std::uint64_t seed = seed_from_environment(31);
  Random random(seed);
  for (std::size_t length = 0; length < 200; ++length) {
    for (std::size_t to_at = 0; to_at < 80; to_at += 1 + random.below(5)) {
      std::vector<std::byte> from(length + 64);
      random.fill(from);
      std::vector<std::byte> to(length + 256);
      random.fill(to);
      std::vector<std::byte> expected = to;
      const std::size_t from_at = random.below(64);
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(from_at), length,
                  expected.begin() + static_cast<std::ptrdiff_t>(to_at));
      store_past_cache(to.data() + to_at, from.data() + from_at, length);
      fence_past_cache();
      ASSERT_EQ(to, expected) << length << " bytes to " << to_at << ", seed " << seed;
    }
  }
}

TEST(PastCache, WritingBackChangesNothing) {
  std::vector<std::byte> bytes(1000, std::byte{7});
  const std::vector<std::byte> before = bytes;
  write_back(std::span(bytes).subspan(3, 900));
  write_back({});
  fence_past_cache();
  EXPECT_EQ(bytes, before);
}

}  // namespace
}  // namespace espalier::base
