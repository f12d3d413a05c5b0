// SPDX-License-Identifier: Apache-2.0
#include "bench/answers.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace espalier::bench {
namespace {

TEST(BytesHash, TellsLengthsAndBytesApart) {
  std::set<std::uint64_t> hashes;
  std::string bytes;
  for (std::size_t size = 0; size < 100; ++size) {
    bytes.assign(size, '\0');
    EXPECT_TRUE(hashes.insert(bytes_hash(bytes)).second) << size;
    for (std::size_t at = 0; at < size; ++at) {
      bytes[at] = 1;
      EXPECT_TRUE(hashes.insert(bytes_hash(bytes)).second) << size << " " << at;
      bytes[at] = 0;
    }
  }
}

// Also of items: bytes of the key are distinguished from those of the value.
TEST(ItemHash, TellsLengthsAndBytesApart) {
  std::set<std::uint64_t> hashes;
  for (std::size_t key_bytes = 1; key_bytes < 20; ++key_bytes) {
    for (std::size_t value_bytes = 0; value_bytes < 20; ++value_bytes) {
      std::string bytes(key_bytes + value_bytes, '\0');
      const auto hash = [&] {
        const std::string_view all = bytes;
        return item_hash(all.substr(0, key_bytes), all.substr(key_bytes));
      };
      EXPECT_TRUE(hashes.insert(hash()).second) << key_bytes << " " << value_bytes;
      for (char& byte : bytes) {
        byte = 1;
        EXPECT_TRUE(hashes.insert(hash()).second) << key_bytes << " " << value_bytes;
        byte = 0;
      }
    }
  }
}

TEST(Answers, OrderDoesNotMatter) {
  Answers a;
  a.value(1, "one");
  a.missing(2);
  a.items(3, item_hash("k", "v"));
  a.scan_done(3, 1);
  Answers b;
  b.scan_done(3, 1);
  b.missing(2);
  b.items(3, item_hash("k", "v"));
  b.value(1, "one");
  EXPECT_EQ(a.exact(), b.exact());
  EXPECT_EQ(a.shape(), b.shape());
}

TEST(Answers, ExactSeesValuesAndShapeSeesOutcomes) {
  const auto of = [](auto give) {
    Answers answers(3);
    give(answers);
    return answers;
  };
  const Answers one = of([](Answers& to) { to.value(1, "one"); });
  const Answers two = of([](Answers& to) { to.value(1, "two"); });
  const Answers longer = of([](Answers& to) { to.value(1, "three"); });
  const Answers none = of([](Answers& to) { to.missing(1); });
  EXPECT_NE(one.exact(), two.exact());
  EXPECT_EQ(one.shape(), two.shape());
  EXPECT_NE(one.shape(), longer.shape());
  EXPECT_NE(one.shape(), none.shape());
  Answers drawn(3, false);
  Answers drawn_longer(3, false);
  drawn.value(1, "one");
  drawn_longer.value(1, "three");
  EXPECT_EQ(drawn.shape(), drawn_longer.shape());
  EXPECT_NE(drawn.exact(), drawn_longer.exact());
  EXPECT_NE(of([](Answers& to) { to.written(1, true); }).shape(),
            of([](Answers& to) { to.written(1, false); }).shape());

  const Answers three = of([](Answers& to) { to.scan_done(1, 3); });
  const Answers four = of([](Answers& to) { to.scan_done(1, 4); });
  EXPECT_EQ(three.shape(), four.shape());
  EXPECT_NE(three.exact(), four.exact());
  EXPECT_NE(three.shape(), of([](Answers& to) { to.scan_done(1, 2); }).shape());
}

TEST(Answers, SwappedTagsAreSeen) {
  Answers right;
  right.value(1, "a");
  right.value(2, "b");
  Answers swapped;
  swapped.value(2, "a");
  swapped.value(1, "b");
  EXPECT_NE(right.exact(), swapped.exact());
}

TEST(Answers, SumsKeepTheFirstError) {
  Answers all;
  Answers one;
  one.fail("first");
  one.fail("second");
  all.add(one);
  EXPECT_EQ(all.errors(), 2U);
  EXPECT_EQ(all.first_error(), "first");
}

}  // namespace
}  // namespace espalier::bench
