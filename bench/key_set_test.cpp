// SPDX-License-Identifier: Apache-2.0
#include "bench/key_set.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "base/temporary_folder.hpp"

namespace espalier::bench {
namespace {

// A file that lives as long as this object.
class KeyFile {
 public:
  explicit KeyFile(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  base::TemporaryFolder folder_;
  const std::string path_ = (folder_ / "keys").string();
};

std::set<std::string> keys_of(const KeySet& set) {
  std::set<std::string> keys;
  for (std::uint64_t i = 0; i < set.size(); ++i) keys.emplace(set.key(i));
  return keys;
}

TEST(KeySet, RandomKeysAreDifferentAndOfOneLength) {
  for (const std::uint32_t bytes : {8U, 13U, 16U, 64U, 460U}) {
    const KeySet set = KeySet::random(2000, bytes, 7);
    const std::set<std::string> keys = keys_of(set);
    EXPECT_EQ(keys.size(), 2000U);
    for (const std::string& key : keys) EXPECT_EQ(key.size(), bytes);
  }
}

TEST(KeySet, FreshKeysAreNew) {
  const KeySet set = KeySet::random(2000, 16, 7);
  std::set<std::string> keys = keys_of(set);
  std::string key;
  for (std::uint64_t i = 0; i < 500; ++i) {
    set.fresh(i, key);
    EXPECT_TRUE(keys.insert(key).second);
    set.fresh((std::uint64_t{1} << 36) + i, key);  // as another thread would
    EXPECT_TRUE(keys.insert(key).second);
  }
}

TEST(KeySet, RanksFollowTheOrderOfKeys) {
  const KeySet set = KeySet::random(1000, 16, 7);
  std::uint64_t rank = 0;
  for (const std::string& key : keys_of(set)) EXPECT_EQ(set.key_of_rank(rank++), key);
}

TEST(KeySet, FilesGiveTheirLinesShuffled) {
  std::string text = "\n" + std::string(461, 'x') + "\r\n" + std::string(460, 'y') + "\n";
  for (int i = 0; i < 500; ++i) text += "word" + std::to_string(i % 400) + "\n";
  const KeyFile file(text + "last");
  const KeySet set = KeySet::from_file(file.path(), 0, 3);
  const std::set<std::string> keys = keys_of(set);
  EXPECT_EQ(set.size(), 402U);  // empty, too long and repeated ones left out
  EXPECT_EQ(keys.size(), 402U);
  EXPECT_TRUE(keys.contains("last"));
  EXPECT_TRUE(keys.contains(std::string(460, 'y')));
  EXPECT_EQ(set.fixed_bytes(), 0U);
  EXPECT_GT(set.mean_key_bytes(), 6.0);
  std::uint64_t in_order = 0;
  for (std::uint64_t i = 1; i < set.size(); ++i) in_order += set.key(i - 1) < set.key(i) ? 1 : 0;
  EXPECT_LT(in_order, set.size() * 3 / 4);
  EXPECT_EQ(KeySet::from_file(file.path(), 10, 3).size(), 10U);
}

TEST(KeySet, FreshKeysOfAFileAreNew) {
  const KeyFile file("a\na~0\na~1\nb\nb~2\n" + std::string(460, 'z') + "\n");
  const KeySet set = KeySet::from_file(file.path(), 0, 1);
  std::set<std::string> keys = keys_of(set);
  std::string key;
  for (std::uint64_t i = 0; i < 200; ++i) {
    set.fresh(i, key);
    EXPECT_LE(key.size(), kKeyBytesMax);
    EXPECT_TRUE(keys.insert(key).second) << key;
  }
}

TEST(KeySet, KeysOfAShapeAreDifferentAndFreshOnesNew) {
  for (const KeySet::Shape shape : {integer_key, prefix_key, url_key}) {
    const KeySet set = KeySet::of_shape(2000, shape, 7);
    std::set<std::string> keys = keys_of(set);
    EXPECT_EQ(keys.size(), 2000U);
    std::string key;
    for (std::uint64_t i = 0; i < 500; ++i) {
      set.fresh(i, key);
      EXPECT_EQ(key.size(), set.mean_key_bytes());
      EXPECT_TRUE(keys.insert(key).second) << key;
      set.fresh((std::uint64_t{1} << 36) + i, key);  // as another thread would
      EXPECT_TRUE(keys.insert(key).second) << key;
    }
  }
  const KeySet urls = KeySet::of_shape(10, url_key, 1);
  EXPECT_EQ(urls.key(0).size(), 64U) << urls.key(0);
}

TEST(KeySet, ValuesTellKeysAndRoundsApart) {
  std::set<std::string> values;
  std::string value;
  for (std::uint64_t key = 0; key < 50; ++key) {
    for (std::uint64_t round = 0; round < 50; ++round) {
      make_value(key, round, {16}, value);
      EXPECT_EQ(value.size(), 16U);
      EXPECT_TRUE(values.insert(value).second);
    }
  }
  make_value(1, 1, {0}, value);
  EXPECT_EQ(value, "");
}

TEST(KeySet, DrawnLengthsOfValuesReachFromNothingToAll) {
  std::set<std::size_t> lengths;
  std::string value;
  for (std::uint64_t key = 0; key < 1000; ++key) {
    make_value(key, 1, {9, true}, value);
    lengths.insert(value.size());
  }
  EXPECT_EQ(lengths.size(), 10U);
  EXPECT_EQ(*lengths.rbegin(), 9U);
}

TEST(KeySet, KeysInOrderAscendAndGoOn) {
  const KeySet keys = KeySet::in_order(100, integer_key);
  for (std::uint64_t i = 1; i < keys.size(); ++i) EXPECT_LT(keys.key(i - 1), keys.key(i));
  std::string fresh;
  keys.fresh(0, fresh);
  EXPECT_LT(keys.key(99), fresh);
}

}  // namespace
}  // namespace espalier::bench
