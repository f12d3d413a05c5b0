// SPDX-License-Identifier: Apache-2.0
// Golden bytes of an entry of a mapping feed, and its check.
#include "kinds/map/format/mapping_feed.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace espalier::wire {
namespace {

TEST(MappingFeedFormat, AnEntryLiesAsTheDocumentDrawsIt) {
  FeedEntry entry{feed_published(4), 0x0807060504030201, 0x18, 0x3004, 0};
  entry.check = feed_check(entry);
  const std::string golden(
      "\x0a\0\0\0\0\0\0\0"
      "\x01\x02\x03\x04\x05\x06\x07\x08"
      "\x18\0\0\0\0\0\0\0"
      "\x04\x30\0\0",
      28);
  std::string bytes(sizeof entry, '\0');
  std::memcpy(bytes.data(), &entry, sizeof entry);
  EXPECT_EQ(bytes.substr(0, golden.size()), golden);
  EXPECT_EQ(entry.check, 0xE4ECE0AAu);
}

TEST(MappingFeedFormat, TheCheckDependsOnEachBit) {
  const FeedEntry entry{feed_published(4), 7, 8, 9, 0};
  const std::uint32_t check = feed_check(entry);
  for (int bit = 0; bit < 64; ++bit) {
    for (std::uint64_t FeedEntry::*field :
         {&FeedEntry::sequence, &FeedEntry::ref, &FeedEntry::version}) {
      FeedEntry other = entry;
      other.*field ^= std::uint64_t{1} << bit;
      EXPECT_NE(feed_check(other), check) << bit;
    }
    FeedEntry other = entry;
    other.lid ^= std::uint32_t{1} << bit % 32;
    EXPECT_NE(feed_check(other), check) << bit;
  }
}

}  // namespace
}  // namespace espalier::wire
