// SPDX-License-Identifier: Apache-2.0
// The audit sees what is damaged.
#include "kinds/hash/audit.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/atomic_bytes.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"

namespace espalier::hash {
namespace {

class HashAuditTest : public testing::Test {
 protected:
  HashAuditTest() {
    for (const std::string& key : keys_of_one_bin(*f_.map, kSlotsPerBucket + 2, kBin)) {
      f_.put(key, "value");
    }
    directory_ = f_.map->directory(0);
    segment_ = f_.map->segment(directory_, 0);
  }

  /// Whether the audit sees it when a number in the region is another one.
  template <class Number>
  void expect_seen(const std::byte* at, const char* what) {
    const auto number = base::shared<Number>(const_cast<std::byte*>(at));
    const Number before = number.load();
    number.store(before ^ 1);
    EXPECT_FALSE(audit(*f_.map).wrong.empty()) << what;
    number.store(before);
    EXPECT_EQ(f_.faults(), "") << what;
  }
  template <class Header>
  void expect_identity_seen(std::uint64_t offset, const char* what) {
    const std::byte* const at = f_.map->image + offset;
    expect_seen<std::uint32_t>(at + offsetof(Header, map_id), what);
    expect_seen<std::uint64_t>(at + offsetof(Header, created), what);
    expect_seen<std::uint64_t>(at + offsetof(Header, superseded), what);
  }
  void expect_generation_seen(const std::byte* bucket, const char* what) {
    const auto word = base::shared<std::uint64_t>(const_cast<std::byte*>(bucket));
    const std::uint64_t before = word.load();
    word.store(before ^ std::uint64_t{1} << BucketWord::kGenerationShift);
    EXPECT_FALSE(audit(*f_.map).wrong.empty()) << what;
    word.store(before);
    EXPECT_EQ(f_.faults(), "") << what;
  }

  static constexpr std::uint32_t kBin = 17;
  HashFixture f_{{.partitions = 1, .seed = HashSeed{3, 4}}};
  PlaceWord directory_;
  PlaceWord segment_;
};

TEST_F(HashAuditTest, SeesHeadersOfOthers) {
  ASSERT_EQ(f_.faults(), "");
  const std::byte* const head = f_.map->image + f_.map->header_offset;
  expect_identity_seen<HashHeader>(f_.map->header_offset, "header");
  expect_seen<std::uint64_t>(head + offsetof(HashHeader, magic), "magic");
  expect_seen<std::uint32_t>(head + offsetof(HashHeader, partitions), "partitions");
  expect_seen<std::uint32_t>(head + offsetof(HashHeader, versions), "versions");
  expect_seen<std::uint64_t>(head + offsetof(HashHeader, seed) + 8, "seed");
  const std::byte* const directory = f_.map->image + directory_.offset();
  expect_identity_seen<DirectoryHeader>(directory_.offset(), "directory");
  expect_seen<std::uint32_t>(directory + offsetof(DirectoryHeader, partition), "partition");
  expect_seen<std::uint32_t>(directory + offsetof(DirectoryHeader, generation), "generation");
  const std::byte* const segment = f_.map->image + segment_.offset();
  expect_identity_seen<SegmentHeader>(segment_.offset(), "segment");
  expect_seen<std::uint32_t>(segment + offsetof(SegmentHeader, partition), "partition");
  expect_seen<std::uint32_t>(segment + offsetof(SegmentHeader, prefix), "prefix");
  std::uint64_t page = 0;
  f_.map->records().for_each_page([&](std::uint64_t offset, std::uint32_t) { page = offset; });
  expect_identity_seen<RecordPageHeader>(page, "page");
  expect_seen<std::uint32_t>(f_.map->image + page + offsetof(RecordPageHeader, record_bytes),
                             "length");
}

TEST_F(HashAuditTest, SeesGenerationsOfBins) {
  expect_generation_seen(f_.map->bucket(segment_, kBin), "bin");
  expect_generation_seen(f_.map->bucket(segment_, kBin + 1), "empty bin");
  const auto last = base::load_shared<std::uint64_t>(f_.map->bucket(segment_, kBin) +
                                                     offsetof(Bucket, slots) + 6 * sizeof(Slot));
  ASSERT_TRUE(Slot{last}.is_overflow());
  expect_generation_seen(f_.map->bucket(segment_, Slot{last}.line()), "overflow bucket");
}

TEST_F(HashAuditTest, SeesLinksWithoutAnEntry) {
  f_.put("k", "old");
  const HashSnapshot snapshot = f_.map->hold(f_.thread).value();
  const HashWritten written = f_.put("k", "new");
  EXPECT_EQ(f_.faults(), "");
  Retirement& retirement = const_cast<Retirement&>(f_.map->retirement());
  retirement.drop_entry(f_.map->hash("k").bits(), written.version);
  EXPECT_EQ(audit(*f_.map).wrong.size(), 2u);  // the link, and the number of entries
  ASSERT_TRUE(retirement.reuse_entry(
      {f_.map->hash("k").bits(), written.version, sizeof(VersionLink) + 32, 0}));
  EXPECT_EQ(f_.faults(), "");
  f_.map->drop(snapshot);
}

}  // namespace
}  // namespace espalier::hash
