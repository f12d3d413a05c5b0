// SPDX-License-Identifier: Apache-2.0
// Landing regions: over every transport what a peer may do to one and what not, and its limits.
// landing_region_concurrency_test.cpp has peers that change it while it is read.
#include "fabric/landing_region.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/testing/open_descriptors.hpp"
#include "fabric/testing/fabric_fixture.hpp"

namespace espalier::fabric {
namespace {

bool all_are(std::span<const std::byte> bytes, std::uint8_t value) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [value](std::byte b) { return b == static_cast<std::byte>(value); });
}

class FabricLanding : public ::testing::TestWithParam<FabricTransport> {
 protected:
  FabricLanding() : scene(GetParam(), base::seed_from_environment(25)) {}
  [[nodiscard]] LandingRegion make(std::uint64_t bytes, Domain domain = 0) {
    return *LandingRegion::create(scene.link->far().regions(),
                                  {bytes, domain, scene.properties().peer_maps_memory});
  }
  /// Both ends of a pair whose far end is of this domain.
  [[nodiscard]] ConnectedPair connect(Domain domain = 0) {
    QueuePairOptions far;
    far.domain = domain;
    return scene.connect({}, far);
  }

  FabricScene scene;
};

TEST_P(FabricLanding, WhatAPeerWritesIsReadOnce) {
  const auto region = make(100'000);
  EXPECT_EQ(region.bytes(), 25 * kPageBytes);
  EXPECT_EQ(region.remote().bytes, region.bytes());
  const auto pair = connect();
  std::vector<std::byte> into(30'000);
  EXPECT_EQ(region.read_once(0, into).size(), into.size());
  EXPECT_TRUE(all_are(into, 0));
  for (const std::uint64_t offset :
       {std::uint64_t{0}, std::uint64_t{4093}, 25 * kPageBytes - 30'000}) {
    const auto sent = scene.noise(into.size());
    const auto write = WorkRequest::write(1, sent, region.remote().key, region.remote().at(offset));
    ASSERT_EQ(scene.run(*pair.near, write).status, Status::success);
    // A READ behind it has seen it placed, whatever the transport promises of WRITEs.
    std::vector<std::byte> back(sent.size());
    const auto read = WorkRequest::read(2, back, region.remote().key, region.remote().at(offset));
    ASSERT_EQ(scene.run(*pair.near, read).status, Status::success);
    EXPECT_EQ(back, sent);
    EXPECT_EQ(region.read_once(offset, into).size(), into.size());
    EXPECT_EQ(into, sent);
  }
}

TEST_P(FabricLanding, APeerReachesNothingBesides) {
  const auto region = make(kPageBytes, 7);
  const auto other = make(kPageBytes, 8);
  const std::vector<std::byte> mark(16, std::byte{0xAA});
  const auto status = [&](const WorkRequest& request, Domain domain) {
    return scene.run(*connect(domain).near, request).status;
  };
  const RemoteRegion& remote = region.remote();
  const auto write = [&](std::uint64_t offset) {
    return WorkRequest::write(1, mark, remote.key, remote.at(offset));
  };
  EXPECT_EQ(status(write(kPageBytes - 16), 7), Status::success);
  EXPECT_EQ(status(write(kPageBytes - 15), 7), Status::remote_access);
  EXPECT_EQ(status(write(kPageBytes), 7), Status::remote_access);
  EXPECT_EQ(status(write(std::uint64_t{0} - 16), 7), Status::remote_access);
  EXPECT_EQ(status(write(0), 8), Status::remote_access);
  EXPECT_EQ(status(write(0), 0), Status::remote_access);
  EXPECT_EQ(status(WorkRequest::fetch_add(1, remote.key, remote.at(0), 1), 7),
            Status::remote_access);
  std::array<std::byte, kPageBytes> bytes;
  EXPECT_TRUE(all_are(region.read_once(0, std::span(bytes).first(kPageBytes - 16)), 0));
  EXPECT_TRUE(all_are(region.read_once(kPageBytes - 16, std::span(bytes).first(16)), 0xAA));
  EXPECT_TRUE(all_are(other.read_once(0, bytes), 0));
}

TEST_P(FabricLanding, AfterItIsGivenBackNothingIsThere) {
  auto region = make(kPageBytes);
  const RemoteRegion remote = region.remote();
  const auto pair = connect();
  const std::vector<std::byte> mark(64, std::byte{1});
  const auto write = WorkRequest::write(1, mark, remote.key, remote.base);
  ASSERT_EQ(scene.run(*pair.near, write).status, Status::success);
  region.give_back();
  EXPECT_EQ(scene.run(*pair.near, write).status, Status::remote_access);
  std::array<std::byte, 64> into;
  EXPECT_TRUE(region.read_once(0, into).empty());
  EXPECT_FALSE(region.read_once<std::uint64_t>(0));
  EXPECT_EQ(region.bytes(), 0u);
  region.give_back();
  // Another one begins with nothing of it.
  const auto next = make(kPageBytes);
  EXPECT_TRUE(all_are(next.read_once(0, into), 0));
  EXPECT_NE(next.remote(), remote);
}

INSTANTIATE_TEST_SUITE_P(Transports, FabricLanding, ::testing::ValuesIn(fabric_transports()),
                         [](const auto& each) { return each.param.name; });

struct Landing {
  explicit Landing(std::uint64_t bytes, bool mapped = false)
      : region(*LandingRegion::create(*table, {bytes, 0, mapped})) {}
  /// As a peer over `shm` gets it.
  [[nodiscard]] memory::SharedMemory attach() const {
    auto mapping = table->mapping(region.remote().key, 0);
    return *memory::SharedMemory::attach(std::move(mapping->descriptor), region.bytes(),
                                         memory::Rights::write);
  }

  std::shared_ptr<RegionTable> table = *RegionTable::create(3);
  LandingRegion region;
};

TEST(LandingRegion, HasLimits) {
  const auto table = *RegionTable::create(1);
  for (const bool mapped : {false, true}) {
    for (const std::uint64_t bytes : {std::uint64_t{0}, LandingRegion::kBytesMax + 1,
                                      ~std::uint64_t{0}, ~std::uint64_t{0} - 4094}) {
      const auto refused = LandingRegion::create(*table, {bytes, 0, mapped});
      ASSERT_FALSE(refused) << bytes;
      EXPECT_EQ(refused.error().code, Code::invalid_argument);
    }
    const auto most = LandingRegion::create(*table, {LandingRegion::kBytesMax, 0, mapped});
    ASSERT_TRUE(most);
    EXPECT_EQ(most->bytes(), LandingRegion::kBytesMax);
    EXPECT_EQ(LandingRegion::create(*table, {1, 0, mapped})->bytes(), kPageBytes);
  }
}

// Offsets and lengths come from peers.
TEST(LandingRegion, ReadsNothingThatIsNotThere) {
  for (const bool mapped : {false, true}) {
    const Landing landing(2 * kPageBytes, mapped);
    std::vector<std::byte> into(3 * kPageBytes);
    const auto length = [&](std::uint64_t offset, std::size_t bytes) {
      const auto got = landing.region.read_once(offset, std::span(into).first(bytes));
      EXPECT_TRUE(got.empty() || got.data() == into.data());
      return got.size();
    };
    EXPECT_EQ(length(0, 0), 0u);
    EXPECT_EQ(length(0, 3 * kPageBytes), 2 * kPageBytes);
    EXPECT_EQ(length(1, 2 * kPageBytes), 2 * kPageBytes - 1);
    EXPECT_EQ(length(2 * kPageBytes - 1, 8), 1u);
    for (const std::uint64_t offset :
         {2 * kPageBytes, 2 * kPageBytes + 1, ~std::uint64_t{0}, ~std::uint64_t{0} - 7,
          std::uint64_t{1} << 63, std::uint64_t{1} << 32}) {
      EXPECT_EQ(length(offset, 64), 0u) << offset;
      EXPECT_FALSE(landing.region.read_once<std::uint64_t>(offset));
    }
    EXPECT_TRUE(landing.region.read_once<std::uint64_t>(2 * kPageBytes - 8));
    EXPECT_FALSE(landing.region.read_once<std::uint64_t>(2 * kPageBytes - 7));
  }
}

TEST(LandingRegion, APeerThatMapsItCannotChangeItsLengthOrItsSeals) {
  const Landing landing(4 * kPageBytes, true);
  const auto mapping = landing.table->mapping(landing.region.remote().key, 0);
  ASSERT_TRUE(mapping);
  const int file = mapping->descriptor.number();
  struct stat facts{};
  ASSERT_EQ(::fstat(file, &facts), 0);
  EXPECT_EQ(facts.st_size, static_cast<off_t>(4 * kPageBytes));  // there is nothing else in it
  for (const std::uint64_t bytes : {std::uint64_t{0}, kPageBytes, 5 * kPageBytes}) {
    EXPECT_EQ(::ftruncate(file, static_cast<off_t>(bytes)), -1) << bytes;
    EXPECT_EQ(errno, EPERM);
  }
  EXPECT_EQ(::pwrite(file, "x", 1, 4 * kPageBytes), -1);
  for (const int seal : {F_SEAL_WRITE, F_SEAL_FUTURE_WRITE, F_SEAL_SHRINK, F_SEAL_SEAL}) {
    EXPECT_EQ(::fcntl(file, F_ADD_SEALS, seal), -1) << seal;
    EXPECT_EQ(errno, EPERM);
  }
  // Holes it can make; they are read as zeros.
  ASSERT_EQ(::pwrite(file, "x", 1, 0), 1);
  EXPECT_EQ(landing.region.read_once<std::uint64_t>(0), std::uint64_t{'x'});
  ASSERT_EQ(::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4 * kPageBytes), 0);
  EXPECT_EQ(landing.region.read_once<std::uint64_t>(0), 0u);
}

// What it writes afterwards it writes for itself.
TEST(LandingRegion, APeerThatKeepsItsMappingKeepsNoneOfOurs) {
  Landing landing(4 * kPageBytes, true);
  const memory::SharedMemory kept = landing.attach();
  std::fill_n(kept.at(0), kept.bytes(), std::byte{7});
  const auto old = landing.table->mapping(landing.region.remote().key, 0);
  landing.region.give_back();
  struct stat facts{};
  ASSERT_EQ(::fstat(old->descriptor.number(), &facts), 0);
  EXPECT_EQ(facts.st_blocks, 0);
  std::fill_n(kept.at(0), kept.bytes(), std::byte{9});
  landing.region = *LandingRegion::create(*landing.table, {4 * kPageBytes, 0, true});
  std::vector<std::byte> into(4 * kPageBytes);
  EXPECT_TRUE(all_are(landing.region.read_once(0, into), 0));
}

TEST(LandingRegion, MovesWithWhatIsItsAndLeavesNothing) {
  const auto before = base::open_descriptors();
  {
    Landing landing(kPageBytes, true);
    const RemoteRegion remote = landing.region.remote();
    *landing.attach().at(8) = std::byte{5};
    LandingRegion moved = std::move(landing.region);
    EXPECT_EQ(moved.read_once<std::uint64_t>(8), 5u);
    EXPECT_EQ(moved.remote(), remote);
    auto other = *LandingRegion::create(*landing.table, {2 * kPageBytes, 0, false});
    other = std::move(moved);
    EXPECT_EQ(other.remote(), remote);
    EXPECT_EQ(other.bytes(), kPageBytes);
    EXPECT_EQ(other.read_once<std::uint64_t>(8), 5u);
    landing.region = std::move(other);
    EXPECT_TRUE(landing.table->mapping(remote.key, 0));
    {
      const LandingRegion last = std::move(landing.region);
    }
    EXPECT_FALSE(landing.table->mapping(remote.key, 0));
  }
  EXPECT_EQ(base::open_descriptors(), before);
}

}  // namespace
}  // namespace espalier::fabric
