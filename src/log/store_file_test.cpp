// SPDX-License-Identifier: Apache-2.0
#include "log/store_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "log/format.hpp"
#include "log/testing/faulty_folder.hpp"

namespace espalier::log {
namespace {

constexpr std::uint64_t kDrawn = 0x1122'3344'5566'7788;

TEST(StoreFile, HasTheseBytes) {
  FaultyFolder folder(1);
  EXPECT_EQ(open_store_file(folder, kDrawn), kDrawn);
  const std::vector<std::byte>& bytes = folder.bytes(kStoreName);
  ASSERT_EQ(bytes.size(), kUnitBytes);
  const unsigned char golden[] = {'E',  'S',  'P',  'T',  'O', 'R', 'E',  0,    1,    0,
                                  0,    0,    0,    0,    0,   0,   0x88, 0x77, 0x66, 0x55,
                                  0x44, 0x33, 0x22, 0x11, 0,   0,   0,    0};
  EXPECT_EQ(std::memcmp(bytes.data(), golden, sizeof golden), 0);
  EXPECT_TRUE(std::all_of(bytes.begin() + sizeof(StoreHeader), bytes.end(),
                          [](std::byte each) { return each == std::byte{0}; }));
}

TEST(StoreFile, IsMadeOnce) {
  FaultyFolder folder(2);
  EXPECT_EQ(open_store_file(folder, kDrawn), kDrawn);
  folder.restart(true);
  EXPECT_EQ(open_store_file(folder, 7), kDrawn);
}

TEST(StoreFile, IsFoundAndNotMade) {
  FaultyFolder folder(4);
  EXPECT_EQ(find_store_file(folder), std::nullopt);
  EXPECT_TRUE(folder.names()->empty());
  ASSERT_TRUE(open_store_file(folder, kDrawn));
  EXPECT_EQ(find_store_file(folder), kDrawn);
  folder.flip(kStoreName, 0, 1);
  EXPECT_EQ(find_store_file(folder).error().fault, LogFault::store);
}

TEST(StoreFile, EachBitCounts) {
  FaultyFolder folder(3);
  ASSERT_TRUE(open_store_file(folder, kDrawn));
  for (std::uint64_t offset = 0; offset < sizeof(StoreHeader); ++offset) {
    folder.flip(kStoreName, offset, 3);
    const auto opened = open_store_file(folder, kDrawn);
    ASSERT_FALSE(opened) << offset;
    EXPECT_EQ(opened.error().fault, LogFault::store) << offset;
    EXPECT_EQ(opened.error().file, kStoreName);
    folder.flip(kStoreName, offset, 3);
  }
  EXPECT_EQ(open_store_file(folder, 7), kDrawn);
  folder.bytes(kStoreName).resize(8);
  EXPECT_EQ(open_store_file(folder, 7).error().fault, LogFault::store);
}

// Wherever the crash comes: there is one store or none, and its number is one that was drawn.
TEST(StoreFile, ACrashLeavesItWholeOrNotThere) {
  for (const bool power_lost : {false, true}) {
    bool opened = false;
    for (std::uint64_t operation = 1; !opened; ++operation) {
      FaultyFolder folder(operation);
      folder.crash_in(operation);
      opened = open_store_file(folder, kDrawn).has_value();
      folder.restart(power_lost);
      const auto again = open_store_file(folder, 7);
      ASSERT_TRUE(again) << operation << message(again.error());
      EXPECT_TRUE(*again == 7 || *again == kDrawn);
      EXPECT_TRUE(!opened || *again == kDrawn);
    }
  }
}

}  // namespace
}  // namespace espalier::log
