// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/node/search_key.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/bytes.hpp"
#include "kinds/map/testing/tree_fixture.hpp"

namespace espalier::tree {
namespace {

int sign(int number) { return (number > 0) - (number < 0); }

// Keys where comparing goes wrong first: zeros at the end, keys that begin others, high bytes, and
// lengths around 8 and 16.
std::vector<std::string> hostile_keys() {
  std::vector<std::string> keys{"", std::string(1, '\0'), std::string(2, '\0'), "\xFF", "a"};
  for (const std::size_t bytes : {1, 6, 7, 8, 9, 14, 15, 16, 17, 23, 24, 25, 40}) {
    for (const char last : {'\0', 'a', '\x7F', '\x80', '\xFF'}) {
      keys.push_back(std::string(bytes, 'a') + last);
      keys.push_back(std::string(bytes, '\xFF') + last);
      keys.push_back(std::string(bytes, '\0') + last);
    }
  }
  return keys;
}

// With 8 readable bytes behind it, as keys in nodes have.
std::string padded(const std::string& key) { return key + std::string(8, '\xA5'); }

TEST(Keys, CompareAsStringsDo) {
  const auto keys = hostile_keys();
  for (const std::string& a : keys) {
    for (const std::string& b : keys) {
      const auto differ = std::mismatch(
          a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())),
          b.begin());
      const auto shared = static_cast<std::size_t>(differ.first - a.begin());
      for (const std::size_t equal : {std::size_t{0}, shared / 2, shared}) {
        ASSERT_EQ(sign(compare_keys(a, b, equal)), sign(a.compare(b)))
            << testing::PrintToString(a) << " " << testing::PrintToString(b) << " " << equal;
      }
      ASSERT_EQ(same_key(a, b), a == b);
      if (key_prefix_of(a) == key_prefix_of(b)) {
        ASSERT_EQ(sign(compare_same_head(a, b)), sign(a.compare(b)));
      }
    }
  }
}

TEST(Keys, HeadsOrderAsKeysDoUpToTies) {
  const auto keys = hostile_keys();
  for (const std::string& a : keys) {
    ASSERT_EQ(key_prefix_of(a), base::load_be64_prefix(a));
    std::string padded_head = a.substr(0, 8);
    padded_head.resize(8, '\0');
    ASSERT_EQ(key_prefix_of(a), big_endian_at(padded_head.data()));
    for (const std::string& b : keys) {
      if (a < b) {
        ASSERT_LE(key_prefix_of(a), key_prefix_of(b));
      }
    }
  }
}

TEST(Keys, TagsDependOnTheKeyAlone) {
  std::set<std::uint8_t> tags;
  for (int i = 0; i < 2000; ++i) {
    const std::string key =
        "key" + std::to_string(i) + std::string(static_cast<std::size_t>(i) % 20, 'x');
    const std::string copy = padded(key);
    ASSERT_EQ(tag_of(key), tag_of(std::string_view(copy).substr(0, key.size())));
    tags.insert(tag_of(key));
  }
  EXPECT_EQ(tags.size(), 256u);
  EXPECT_NE(tag_of("aaaaaaaa"), tag_of("aaaaaaab"));
}

TEST(SearchKey, IsTheKeyAndKnowsItsHeads) {
  SearchKey key;
  key.assign(std::string(400, 'z'));  // what it held before must not show
  for (const std::string& text : hostile_keys()) {
    key.assign(text);
    ASSERT_EQ(key.view(), text);
    ASSERT_EQ(key.bytes(), text.size());
    ASSERT_EQ(key.prefix(), key_prefix_of(text));
    ASSERT_EQ(key.tag(), tag_of(text));
    for (std::size_t prefix = 0; prefix <= text.size(); ++prefix) {
      ASSERT_EQ(key.head_after(static_cast<std::uint32_t>(prefix)),
                key_prefix_of(std::string_view(text).substr(prefix)));
    }
    ASSERT_EQ(key.head_after(static_cast<std::uint32_t>(text.size()) + 5), 0u);
  }
}

TEST(SearchKey, IsTheSameAsItself) {
  SearchKey key;
  for (const std::string& a : hostile_keys()) {
    if (a.empty()) continue;
    key.assign(a);
    for (const std::string& b : hostile_keys()) {
      // As long as the key: AddressSanitizer sees a byte read behind it.
      const std::vector<char> copy(b.begin(), b.end());
      ASSERT_EQ(key.same_as(copy.data(), static_cast<std::uint32_t>(b.size())), a == b)
          << testing::PrintToString(a) << " " << testing::PrintToString(b);
    }
  }
}

TEST(SearchKey, TheSuccessorIsTheNextKey) {
  SearchKey key;
  for (const std::string& a : hostile_keys()) {
    key.assign_successor(a);
    ASSERT_GT(key.view(), std::string_view(a));
    ASSERT_EQ(key.prefix(), key_prefix_of(key.view()));
    for (const std::string& b : hostile_keys()) {
      ASSERT_EQ(b > a, compare_keys(b, key.view()) >= 0);
    }
  }
  key.assign_successor(std::string(wire::kKeyBytesMax, '\xFF'));
  EXPECT_EQ(key.bytes(), wire::kKeyBytesMax + 1);
}

TEST(KeyPrefixMap, KeepsTheOrderAndSaturatesOutside) {
  base::Random random(base::seed_from_environment(6));
  for (int round = 0; round < 2000; ++round) {
    std::uint64_t first = random() >> random.below(64);
    std::uint64_t last = first + (random.below(4) == 0 ? 0 : random() >> random.below(64));
    if (last < first) std::swap(first, last);
    const KeyPrefixMap map = KeyPrefixMap::covering(first, last);
    ASSERT_LT(map.shift, 64u);
    ASSERT_EQ(map(first), 0u);
    std::vector<std::uint64_t> words{0, first, last, ~std::uint64_t{0}};
    for (int i = 0; i < 20; ++i) words.push_back(random() >> random.below(64));
    std::sort(words.begin(), words.end());
    for (std::size_t i = 1; i < words.size(); ++i) ASSERT_LE(map(words[i - 1]), map(words[i]));
    // 32 bits of all ones mark what is unused.
    ASSERT_LT(map(~std::uint64_t{0}) >> 32, 0xFFFF'FFFFu);
  }
}

TEST(KeyPrefixMap, SpendsItsBitsOnItsRange) {
  const KeyPrefixMap map = KeyPrefixMap::covering(1000, 1000 + 65535);
  EXPECT_EQ(map(1000) >> 48, 0u);
  EXPECT_EQ(map(1001) >> 48, 1u);
  EXPECT_EQ(map(1000 + 65534) >> 48, 65534u);
}

}  // namespace
}  // namespace espalier::tree
