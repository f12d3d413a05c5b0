// SPDX-License-Identifier: Apache-2.0
#include "base/byte_window.hpp"

#include <gtest/gtest.h>

#include "base/testing/memory_source.hpp"

namespace espalier::base {
namespace {

TEST(ByteWindow, ShowsAllBytesInOrderWhateverThePieces) {
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += std::to_string(i);
  for (const std::size_t piece : {1UL, 7UL, 4096UL, 1UL << 20}) {
    MemorySource source(bytes, piece);
    ByteWindow window(source);
    std::string seen;
    while (!window.at_end()) {
      ASSERT_TRUE(window.grow());
      const std::size_t take = window.at_end() ? window.view().size() : window.view().size() / 2;
      seen += window.view().substr(0, take);
      window.consume(take);
    }
    EXPECT_EQ(seen, bytes);
    EXPECT_EQ(window.consumed_bytes(), bytes.size());
  }
}

TEST(ByteWindow, GrowsAtLeastTwofold) {
  MemorySource source(std::string(1 << 20, 'x'), 1000);
  ByteWindow window(source);
  ASSERT_TRUE(window.grow());
  while (!window.at_end()) {
    const std::size_t before = window.view().size();
    ASSERT_TRUE(window.grow());
    EXPECT_TRUE(window.at_end() || window.view().size() >= 2 * before);
  }
  EXPECT_EQ(window.view().size(), std::size_t{1} << 20);
}

TEST(ByteWindow, PassesOnTheErrorAndKeepsWhatWasRead) {
  MemorySource source("abcdef", 2);
  source.fail_after(4, EIO);
  ByteWindow window(source);
  ASSERT_TRUE(window.grow());
  ASSERT_TRUE(window.grow());
  const auto failed = window.grow();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(), (Error{Code::system, 0, EIO}));
  EXPECT_EQ(window.view(), "abcd");
}

}  // namespace
}  // namespace espalier::base
