// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/remote/bin_cache.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/hash/remote/record_cache.hpp"

namespace espalier::place {
namespace {

constexpr std::uint64_t kTinyCacheBytes = 4096;

std::array<std::byte, hash::kLineBytes> bucket_with(std::uint64_t number) {
  hash::Bucket bucket{};
  bucket.slots[0] = number;
  std::array<std::byte, hash::kLineBytes> line;
  std::memcpy(line.data(), &bucket, sizeof bucket);
  return line;
}

/// A record of this generation, whose value is a text.
std::vector<std::byte> record_with(std::uint32_t generation, std::string_view value) {
  const hash::RecordHeader header{1, generation, 3, static_cast<std::uint16_t>(value.size())};
  std::vector<std::byte> record(sizeof header + 3 + value.size());
  std::memcpy(record.data(), &header, sizeof header);
  std::memcpy(record.data() + sizeof header, "key", 3);
  std::memcpy(record.data() + sizeof header + 3, value.data(), value.size());
  return record;
}

std::string_view text_in_record(std::span<const std::byte> record) {
  constexpr std::size_t kValueAt = sizeof(hash::RecordHeader) + 3;
  if (record.size() < kValueAt) return "none";
  return {reinterpret_cast<const char*>(record.data()) + kValueAt, record.size() - kValueAt};
}

TEST(BinCache, KeepsWhatIsUsedAmongManyThatComeOnce) {
  BinCache cache(kTinyCacheBytes);
  EXPECT_EQ(cache.find(64), nullptr);
  cache.keep(64, bucket_with(64).data());
  std::uint64_t others = 0;
  for (std::uint64_t offset = 128; offset < 10'000 * 64; offset += 64) {
    ASSERT_NE(cache.find(64), nullptr) << offset;
    cache.keep(offset, bucket_with(offset).data());
    const std::byte* const kept = cache.find(offset - 64);
    if (kept == nullptr) continue;
    ++others;
    std::uint64_t slot = 0;
    std::memcpy(&slot, kept + offsetof(hash::Bucket, slots), sizeof slot);
    ASSERT_EQ(slot, offset - 64);
  }
  EXPECT_GT(others, 5'000u);
  cache.keep(64, bucket_with(7).data());  // as it is now
  EXPECT_EQ(std::memcmp(cache.find(64) + 8, bucket_with(7).data() + 8, hash::kLineBytes - 8), 0);
}

TEST(BinCache, WithoutMemoryNothingIsRemembered) {
  BinCache bins(0);
  bins.keep(64, bucket_with(1).data());
  bins.prefetch(64);
  EXPECT_EQ(bins.find(64), nullptr);
  RecordCache records(100);
  records.keep(64, record_with(1, "value"));
  records.prefetch(hash::Slot::of(64, 1, 1));
  records.forget(64);
  EXPECT_TRUE(records.find(hash::Slot::of(64, 1, 1)).empty());
}

TEST(RecordCache, KeepsWhatIsUsedAmongManyThatComeOnce) {
  RecordCache cache(kTinyCacheBytes);
  const hash::Slot used = hash::Slot::of(80, 5, 1);
  EXPECT_TRUE(cache.find(used).empty());
  cache.keep(80, record_with(5, "used"));
  std::uint64_t others = 0;
  for (std::uint32_t i = 10; i < 10'000; ++i) {
    ASSERT_EQ(text_in_record(cache.find(used)), "used") << i;
    const std::string value = std::to_string(i);
    cache.keep(i * 80, record_with(i, value));
    ASSERT_EQ(text_in_record(cache.find(hash::Slot::of(i * 80, i, 1))), value);
    if (text_in_record(cache.find(hash::Slot::of((i - 8) * 80, i - 8, 1))) != "none") ++others;
  }
  EXPECT_GT(others, 5'000u);
}

TEST(RecordCache, KnowsARecordByItsGeneration) {
  RecordCache cache(kTinyCacheBytes);
  cache.keep(80, record_with(5, "five"));
  EXPECT_EQ(text_in_record(cache.find(hash::Slot::of(80, 5, 9))), "five");
  EXPECT_TRUE(cache.find(hash::Slot::of(80, 6, 9)).empty());
  EXPECT_TRUE(cache.find(hash::Slot::of(80, 5, 9, true)).empty()) << "a link is no record";
  cache.keep(0, record_with(5, "nothing lies there"));
  cache.forget(0);
  EXPECT_TRUE(cache.find(hash::Slot::of(0, 5, 9)).empty());
  cache.keep(80, record_with(6, "and six"));
  EXPECT_TRUE(cache.find(hash::Slot::of(80, 5, 9)).empty());
  EXPECT_EQ(text_in_record(cache.find(hash::Slot::of(80, 6, 9))), "and six");
  cache.forget(80);
  EXPECT_TRUE(cache.find(hash::Slot::of(80, 6, 9)).empty());
  cache.forget(80);
  cache.keep(80, record_with(7, "seven"));
  EXPECT_EQ(text_in_record(cache.find(hash::Slot::of(80, 7, 9))), "seven");
}

TEST(RecordCache, LeavesOutWhatIsTooLongOrNoPair) {
  RecordCache cache(kTinyCacheBytes);
  const std::size_t most = RecordCache::kRecordBytes - sizeof(hash::RecordHeader) - 3;
  const std::string longest(most, 'l');
  cache.keep(80, record_with(1, longest));
  EXPECT_EQ(text_in_record(cache.find(hash::Slot::of(80, 1, 1))), longest);
  cache.keep(160, record_with(1, longest + "l"));
  EXPECT_TRUE(cache.find(hash::Slot::of(160, 1, 1)).empty());
  hash::VersionLink link{};
  link.header = {1, 1, 0, hash::kVersionLink};
  cache.keep(240, std::as_bytes(std::span(&link, 1)));
  EXPECT_TRUE(cache.find(hash::Slot::of(240, 1, 1)).empty());
  // Of one that did not come whole nothing is kept.
  const auto record = record_with(1, "value");
  cache.keep(320, std::span(record).first(record.size() - 1));
  EXPECT_TRUE(cache.find(hash::Slot::of(320, 1, 1)).empty());
  cache.keep(400, std::span(record).first(8));
  EXPECT_TRUE(cache.find(hash::Slot::of(400, 1, 1)).empty());
}

}  // namespace
}  // namespace espalier::place
