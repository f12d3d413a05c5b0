// SPDX-License-Identifier: Apache-2.0
// Guessing finds nothing: ten million lookups with random keys and addresses, among several
// regions, of which none is let through.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "fabric/region_table.hpp"

namespace espalier::fabric {
namespace {

constexpr std::uint64_t kProbes = 10'000'000;
constexpr RemoteRights kAllRights = RemoteRights::read | RemoteRights::write | RemoteRights::atomic;

class RegionProbes : public ::testing::Test {
 protected:
  RegionProbes()
      : random(base::seed_from_environment(50)),
        table(*RegionTable::create(random())),
        memory(std::size_t{1} << 20),
        reader(*table) {
    for (std::uint64_t i = 0; i < 300; ++i) {
      const std::uint64_t bytes = random.between(1, memory.size());
      regions.push_back(*table->offer({memory.data(), bytes}, kAllRights));
    }
  }
  [[nodiscard]] const RemoteRegion& any() { return regions[random.below(regions.size())].remote(); }
  [[nodiscard]] bool is_key(RegionKey key) const {
    return std::any_of(regions.begin(), regions.end(),
                       [&](const Registration& each) { return each.remote().key == key; });
  }
  /// Whether this is no guess but right, which a probe may be by chance: 1 byte of it is within.
  [[nodiscard]] bool is_right(RegionKey key, std::uint64_t address) const {
    return std::any_of(regions.begin(), regions.end(), [&](const Registration& each) {
      const RemoteRegion& region = each.remote();
      return region.key == key && address - region.base < region.bytes;
    });
  }
  [[nodiscard]] bool found(RegionKey key, std::uint64_t address, std::uint64_t bytes) {
    reader.enter();
    const bool let = reader.find(key, address, bytes, RemoteRights::read, 0) != nullptr;
    reader.leave();
    return let;
  }

  base::Random random;
  std::shared_ptr<RegionTable> table;
  std::vector<std::byte> memory;
  RegionTable::Reader reader;
  std::vector<Registration> regions;
};

TEST_F(RegionProbes, ARightKeyWithAGuessedAddressFindsNothing) {
  std::uint64_t accepted = 0;
  std::uint64_t right = 0;
  for (std::uint64_t i = 0; i < kProbes / 2; ++i) {
    const RegionKey key = any().key;
    const std::uint64_t address = random() >> random.below(18);
    if (!found(key, address, 1)) continue;
    ++accepted;
    right += is_right(key, address) ? 1 : 0;
  }
  // By construction the chance that one is right is below 1 in 10^5.
  EXPECT_EQ(accepted, right);
  EXPECT_EQ(right, 0u);
}

TEST_F(RegionProbes, ARightAddressWithAGuessedKeyFindsNothing) {
  std::uint64_t accepted = 0;
  std::uint64_t excluded = 0;
  for (std::uint64_t i = 0; i < kProbes / 2; ++i) {
    const RemoteRegion& region = any();
    // Every other one knows the place, and guesses the half that is left.
    const auto drawn = static_cast<RegionKey>(random());
    const RegionKey key = i % 2 == 0 ? drawn : (drawn & 0xFFFF'0000) | (region.key & 0xFFFF);
    const std::uint64_t address = region.at(random.below(region.bytes));
    if (key == region.key) {
      ++excluded;
      continue;
    }
    if (!found(key, address, 1)) continue;
    ++accepted;
    EXPECT_TRUE(is_key(key));
  }
  EXPECT_EQ(accepted, 0u);
  // 16 bits are left to guess, so each of these had a chance of 1 in 65536.
  EXPECT_LT(excluded, 200u);
  RecordProperty("excluded", std::to_string(excluded));
}

TEST_F(RegionProbes, NeighboursAndEndsOfARegionAreNotOfIt) {
  for (int i = 0; i < 100'000; ++i) {
    const RemoteRegion& region = any();
    ASSERT_TRUE(found(region.key, region.base, region.bytes));
    EXPECT_FALSE(found(region.key, region.base, region.bytes + 1 + random.below(1000)));
    EXPECT_FALSE(found(region.key, region.base - 1 - random.below(5000), 1));
    EXPECT_FALSE(found(region.key, region.base + region.bytes, 1));
    const std::uint64_t inside = random.below(region.bytes);
    EXPECT_FALSE(found(region.key, region.base + inside, UINT64_MAX - random.below(inside + 1)));
    EXPECT_FALSE(found(region.key ^ (1u << random.below(32)), region.base, 1));
  }
}

TEST_F(RegionProbes, RevokedKeysFindNothing) {
  std::vector<RemoteRegion> gone;
  for (Registration& each : regions) {
    gone.push_back(each.remote());
    each.revoke();
  }
  for (Registration& each : regions) each = *table->offer({memory.data(), 4096}, kAllRights);
  for (const RemoteRegion& region : gone) EXPECT_FALSE(found(region.key, region.base, 1));
}

}  // namespace
}  // namespace espalier::fabric
