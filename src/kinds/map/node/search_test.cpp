// SPDX-License-Identifier: Apache-2.0
// Every kit of this machine against counting by hand.
#include "kinds/map/node/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/random.hpp"

namespace espalier::tree {
namespace {

// As much as a kernel may read, and not a byte more.
template <class T>
class Lanes {
 public:
  explicit Lanes(const std::vector<T>& values, std::size_t lanes_max)
      : bytes_(lanes_max * sizeof(T), std::byte{0xEE}) {
    if (!values.empty()) std::memcpy(bytes_.data(), values.data(), values.size() * sizeof(T));
  }
  [[nodiscard]] const std::byte* data() const { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
};

template <class T>
Rank count(const std::vector<T>& key_prefixes, T head) {
  Rank rank;
  for (const T other : key_prefixes) {
    rank.below += other < head ? 1 : 0;
    rank.below_or_equal += other <= head ? 1 : 0;
  }
  return rank;
}

class SearchKits : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    kit_ = search_kit(GetParam());
    // Not every machine has the instructions of avx2 and avx512; tests/skips.txt lists these.
    if (kit_ == nullptr) GTEST_SKIP() << "this machine lacks the instructions";
  }
  void expect_rank16(const std::vector<std::uint16_t>& key_prefixes) {
    const Lanes<std::uint16_t> lanes(key_prefixes, 64);
    std::vector<std::uint16_t> wanted{0, 1, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF};
    for (const std::uint16_t head : key_prefixes) {
      for (const int step : {-1, 0, 1}) wanted.push_back(static_cast<std::uint16_t>(head + step));
    }
    for (const std::uint16_t head : wanted) {
      ASSERT_EQ(kit_->rank16(lanes.data(), static_cast<std::uint32_t>(key_prefixes.size()), head),
                count(key_prefixes, head))
          << key_prefixes.size() << " heads, head " << head;
    }
  }
  const SearchKit* kit_ = nullptr;
};

TEST_P(SearchKits, RanksAmongEveryNumberOfHeads) {
  for (std::size_t n = 0; n <= 64; ++n) {
    std::vector<std::uint16_t> key_prefixes(n);
    for (std::size_t i = 0; i < n; ++i) key_prefixes[i] = static_cast<std::uint16_t>(1000 * i);
    expect_rank16(key_prefixes);
    expect_rank16(std::vector<std::uint16_t>(n, 0));
    expect_rank16(std::vector<std::uint16_t>(n, 0xFFFF));
    expect_rank16(std::vector<std::uint16_t>(n, 0x8000));
  }
}

TEST_P(SearchKits, RanksAmongTiesAtEveryPlace) {
  for (std::size_t n = 1; n <= 64; n += 7) {
    for (std::size_t first = 0; first < n; ++first) {
      for (std::size_t last = first; last <= n; last += 5) {
        std::vector<std::uint16_t> key_prefixes(n);
        for (std::size_t i = 0; i < n; ++i) {
          key_prefixes[i] = static_cast<std::uint16_t>(i < first ? i : i < last ? 500 : 60000 + i);
        }
        const Lanes<std::uint16_t> lanes(key_prefixes, 64);
        for (std::uint16_t head = 499; head <= 501; ++head) {
          ASSERT_EQ(kit_->rank16(lanes.data(), static_cast<std::uint32_t>(n), head),
                    count(key_prefixes, head));
        }
      }
    }
  }
}

TEST_P(SearchKits, RanksRandomHeads) {
  base::Random random(base::seed_from_environment(3));
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint16_t> key_prefixes(random.below(65));
    const std::uint64_t spread = random.below(2) == 0 ? 20 : 65536;
    for (auto& head : key_prefixes) head = static_cast<std::uint16_t>(random.below(spread));
    if (round % 3 != 0)
      std::sort(key_prefixes.begin(), key_prefixes.end());  // a node that lies is not sorted
    expect_rank16(key_prefixes);
  }
}

TEST_P(SearchKits, RanksChildrenOfAGroup) {
  base::Random random(base::seed_from_environment(4));
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint32_t> key_prefixes(16);
    const std::uint64_t spread = random.below(2) == 0 ? 10 : std::uint64_t{1} << 32;
    for (auto& head : key_prefixes) head = static_cast<std::uint32_t>(random.below(spread));
    std::sort(key_prefixes.begin(), key_prefixes.end());
    for (std::size_t i = random.below(17); i < 16; ++i) key_prefixes[i] = ~0u;  // unused
    const Lanes<std::uint32_t> lanes(key_prefixes, 16);
    std::vector<std::uint32_t> wanted{0, 0x7FFF'FFFF, 0x8000'0000, ~0u};
    for (const std::uint32_t head : key_prefixes)
      wanted.insert(wanted.end(), {head - 1, head, head + 1});
    for (const std::uint32_t head : wanted) {
      ASSERT_EQ(kit_->rank32(lanes.data(), head), count(key_prefixes, head)) << head;
    }
  }
}

TEST_P(SearchKits, MatchesTagsOfEveryNumberOfSlots) {
  base::Random random(base::seed_from_environment(5));
  for (std::uint32_t n = 0; n <= 64; ++n) {
    for (int round = 0; round < 20; ++round) {
      std::vector<std::uint16_t> slots(64);  // those behind n match too and must not count
      for (auto& slot : slots) {
        slot = static_cast<std::uint16_t>(random.below(3) << 8 | random.below(256));
      }
      if (round == 0) std::fill(slots.begin(), slots.end(), std::uint16_t{0x0112});
      const Lanes<std::uint16_t> lanes(slots, 64);
      for (std::uint8_t tag = 0; tag < 4; ++tag) {
        std::uint64_t expected = 0;
        for (std::uint32_t i = 0; i < n; ++i) {
          if (slots[i] >> 8 == tag) expected |= std::uint64_t{1} << i;
        }
        ASSERT_EQ(kit_->match_tags(lanes.data(), n, tag), expected) << n << " slots";
      }
    }
  }
}

std::string isa_name(const ::testing::TestParamInfo<Isa>& info) {
  constexpr const char* kNames[] = {"scalar", "avx2", "avx512"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(All, SearchKits, ::testing::Values(Isa::scalar, Isa::avx2, Isa::avx512),
                         isa_name);

TEST(SearchKit, TheBestOneIsOneOfThem) {
  const SearchKit& best = best_search_kit();
  EXPECT_TRUE(&best == search_kit(Isa::scalar) || &best == search_kit(Isa::avx2) ||
              &best == search_kit(Isa::avx512));
  EXPECT_NE(search_kit(Isa::scalar), nullptr);
}

}  // namespace
}  // namespace espalier::tree
