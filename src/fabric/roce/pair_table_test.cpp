// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/pair_table.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/random.hpp"

namespace espalier::fabric::roce {
namespace {

Pair* pair_of(std::uint64_t number) {
  return reinterpret_cast<Pair*>((number + 1) * 64);  // never looked into
}

TEST(PairTable, FindsWhatIsThereWhateverTheNumbersHaveInCommon) {
  base::Random random(base::seed_from_environment(96));
  for (const unsigned same_bits : {0u, 4u, 12u}) {
    // Numbers whose low bits are the same want the same slot.
    const auto draw = [&] { return (random() << same_bits | 5) << 40; };
    PairTable table;
    std::map<std::uint32_t, Pair*> model;
    for (int i = 0; i < 10'000; ++i) {
      const bool grows = i / 1000 % 2 == 0;
      if (random.chance(grows ? 0.7 : 0.3)) {
        const auto number = table.draw_number(draw);
        ASSERT_TRUE(number);
        ASSERT_FALSE(model.contains(*number));
        table.insert(*number, pair_of(*number));
        model[*number] = pair_of(*number);
      } else if (!model.empty()) {
        auto at = model.lower_bound(static_cast<std::uint32_t>(random.below(1u << 24)));
        if (at == model.end()) at = model.begin();
        table.erase(at->first);
        model.erase(at);
      }
      ASSERT_EQ(table.size(), model.size());
      const auto any = static_cast<std::uint32_t>(random.below(1u << 24));
      const auto found = model.find(any);
      ASSERT_EQ(table.find(any), found == model.end() ? nullptr : found->second);
      if (i % 500 != 0) continue;
      for (const auto& [number, pair] : model) ASSERT_EQ(table.find(number), pair);
    }
  }
}

TEST(PairTable, GivesNoNumberThatMeansSomethingElse) {
  PairTable table;
  std::uint64_t next = 0;
  const auto first = table.draw_number([&] { return next++ << 40; });
  EXPECT_EQ(first, 2u);  // 0 and 1 are InfiniBand's own
  table.insert(2, pair_of(2));
  next = 0;
  EXPECT_EQ(table.draw_number([&] { return next++ << 40; }), 3u);
  next = 0xFF'FFFE;
  EXPECT_EQ(table.draw_number([&] { return next++ << 40; }), 0xFF'FFFEu);
  next = 0xFF'FFFF;
  EXPECT_EQ(table.draw_number([&] { return next++ << 40; }), 3u);
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(0xFF'FFFF), nullptr);
}

TEST(PairTable, EndsWhereItIsFull) {
  base::Random random(1);
  PairTable table;
  while (const auto number = table.draw_number([&] { return random(); })) {
    table.insert(*number, pair_of(*number));
  }
  EXPECT_EQ(table.size(), PairTable::kPairsMax);
}

}  // namespace
}  // namespace espalier::fabric::roce
