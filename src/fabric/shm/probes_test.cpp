// SPDX-License-Identifier: Apache-2.0
// Guessing finds nothing in mapped memory either: ten million READs, WRITEs and atomics with
// random keys and addresses by the code that checks them over `shm`, among several mapped regions.
// region_probes_test.cpp does the same to the table that all other transports ask.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "fabric/region_table.hpp"
#include "fabric/shm/one_sided.hpp"
#include "fabric/testing/fabric_fixture.hpp"

namespace espalier::fabric::shm {
namespace {

constexpr std::uint64_t kProbes = 10'000'000;

class ShmProbes : public ::testing::Test {
 protected:
  ShmProbes() : random(base::seed_from_environment(51)), table(*RegionTable::create(random())) {
    const auto words = table->words().read_only();
    one_sided.open(*memory::SharedMemory::attach(memory::Descriptor(::dup(words->number())),
                                                 table->words().bytes(), memory::Rights::read),
                   table->placed());
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t bytes = 4096 * random.between(1, 16);
      memories.push_back(*memory::SharedMemory::create("fabric-test", bytes));
      const memory::SharedMemory& own = memories.back();
      regions.push_back(*table->offer({own.at(0), bytes, own.descriptor(), 0}, kAllRights));
      auto mapped = *memory::SharedMemory::attach(memory::Descriptor(::dup(own.descriptor())),
                                                  bytes, memory::Rights::write);
      const RemoteRegion& remote = regions.back().remote();
      Window window{remote.base, remote.bytes, mapped.at(0), nullptr, remote.key, kAllRights};
      one_sided.insert(window, std::move(mapped));
    }
  }
  [[nodiscard]] const RemoteRegion& any() { return regions[random.below(regions.size())].remote(); }
  [[nodiscard]] bool is_right(RegionKey key, std::uint64_t address) const {
    return std::any_of(regions.begin(), regions.end(), [&](const Registration& each) {
      const RemoteRegion& region = each.remote();
      return region.key == key && address - region.base < region.bytes &&
             sizeof word <= region.bytes - (address - region.base);
    });
  }
  /// Whether anything is done there.
  bool reaches(RegionKey key, std::uint64_t address) {
    const WorkRequest read = WorkRequest::read(1, word, key, address);
    WorkRequest request = read;
    switch (random.below(4)) {
      case 0: request = WorkRequest::write(1, word, key, address); break;
      case 1: request = WorkRequest::fetch_add(1, key, address, 1); break;
      case 2: request = WorkRequest::compare_swap(1, key, address, 0, 1); break;
      default: break;
    }
    std::uint64_t old = 0;
    const bool at_once = one_sided.read_inline(read);
    return at_once | (one_sided.run(request, old) == OneSided::Outcome::done);
  }

  base::Random random;
  std::shared_ptr<RegionTable> table;
  std::vector<memory::SharedMemory> memories;
  std::vector<Registration> regions;
  OneSided one_sided;
  std::array<std::byte, 8> word{};
};

TEST_F(ShmProbes, WhatIsRightIsDone) {
  for (const Registration& each : regions) {
    const RemoteRegion& region = each.remote();
    EXPECT_TRUE(reaches(region.key, region.base));
    EXPECT_TRUE(reaches(region.key, region.at(region.bytes - 8)));
    EXPECT_FALSE(reaches(region.key, region.at(region.bytes - 7)));
    EXPECT_FALSE(reaches(region.key, region.base - 1));
  }
}

TEST_F(ShmProbes, ARightKeyWithAGuessedAddressReachesNothing) {
  for (std::uint64_t i = 0; i < kProbes / 2; ++i) {
    const RegionKey key = any().key;
    const std::uint64_t address = random() >> random.below(18);
    if (reaches(key, address)) {
      ASSERT_TRUE(is_right(key, address));
    }
  }
}

TEST_F(ShmProbes, ARightAddressWithAGuessedKeyReachesNothing) {
  for (std::uint64_t i = 0; i < kProbes / 2; ++i) {
    const RemoteRegion& region = any();
    // Every other one knows the place, and guesses the half that is left.
    const auto drawn = static_cast<RegionKey>(random());
    const RegionKey key = i % 2 == 0 ? drawn : (drawn & 0xFFFF'0000) | (region.key & 0xFFFF);
    const std::uint64_t address = region.at(8 * random.below(region.bytes / 8));
    if (reaches(key, address)) {
      ASSERT_TRUE(is_right(key, address));
    }
  }
}

TEST_F(ShmProbes, RevokedKeysReachNothing) {
  std::vector<RemoteRegion> gone;
  for (Registration& each : regions) {
    gone.push_back(each.remote());
    each.revoke();
  }
  for (const RemoteRegion& region : gone) EXPECT_FALSE(reaches(region.key, region.base));
}

}  // namespace
}  // namespace espalier::fabric::shm
