// SPDX-License-Identifier: Apache-2.0
// WRITEs into memory of both kinds by all policies, over every transport: the bytes arrive whole,
// and what is counted is what a model counts.
#include <gtest/gtest.h>

#include <set>

#include "fabric/testing/fabric_fixture.hpp"

namespace espalier::fabric {
namespace {

using enum MemoryKind;
using enum PlacementPolicy;

/// Counts as PlacedCounter should, byte by byte. Memory begins at a page.
class CountingModel {
 public:
  explicit CountingModel(Placement placement) : placement_(placement) {}

  void write(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0) return;
    std::set<std::uint64_t> granules;
    std::set<std::uint64_t> lines;
    for (std::uint64_t i = offset; i != offset + bytes; ++i) {
      granules.insert(i / 256);
      lines.insert(i / 64);
    }
    const bool is_persistent = placement_.kind == persistent;
    if (placement_.past_cache) counts.past_cache_bytes += bytes;
    if (is_persistent) counts.persistent_bytes += bytes;
    if (is_persistent && !placement_.past_cache) counts.cached_lines += lines.size();
    if (!is_persistent || !placement_.past_cache) return;
    granules.erase(last_);
    counts.granules += granules.size();
    last_ = (offset + bytes - 1) / 256;
  }

  PlacedCounts counts;

 private:
  Placement placement_;
  std::uint64_t last_ = ~std::uint64_t{0};
};

class FabricPlacement : public ::testing::TestWithParam<FabricTransport> {
 protected:
  FabricPlacement() : seed(base::seed_from_environment(29)), scene(GetParam(), seed) {}

  /// Of both sides: which of them places bytes is the transport's.
  PlacedCounts counted() {
    PlacedCounts all = scene.link->near().regions().placed().counts();
    all += scene.link->far().regions().placed().counts();
    return all;
  }
  Registration offer(MemoryKind kind, PlacementPolicy policy) {
    scene.link->far().regions().set_placement_policy(policy);
    OfferedMemory offered = scene.far_memory;
    offered.kind = kind;
    return *scene.link->far().regions().offer(offered, RemoteRights::read | RemoteRights::write);
  }
  /// Where and how long a WRITE is: often it goes on behind the one before.
  std::uint64_t next_length() {
    const std::uint64_t longest[] = {8, 64, 300, 5000, 40'000};
    return 1 + scene.random.below(longest[scene.random.below(5)]);
  }

  void write_all(MemoryKind kind, PlacementPolicy policy, bool immediate);

  std::uint64_t seed;
  FabricScene scene;
};

void FabricPlacement::write_all(MemoryKind kind, PlacementPolicy policy, bool immediate) {
  const auto pair = scene.connect();
  const Registration region = offer(kind, policy);
  CountingModel model(placement_of(kind, policy));
  const PlacedCounts before = counted();
  std::vector<std::byte> expected(scene.far_bytes().begin(), scene.far_bytes().end());
  std::uint64_t offset = 0;
  for (std::uint64_t i = 0; i < 40 / GetParam().effort; ++i) {
    const std::uint64_t length = next_length();
    if (scene.random.chance(0.4)) offset = scene.random.below(FabricScene::kRegionBytes - length);
    if (offset + length > FabricScene::kRegionBytes) offset = 0;
    const auto from = scene.noise(length);
    const RemoteRegion& remote = region.remote();
    if (immediate) {
      const Receive receive{i, {}};
      ASSERT_EQ(pair.far->post_receives({&receive, 1}), 1u);
    }
    const auto request =
        immediate ? WorkRequest::write_immediate(i, from, remote.key, remote.at(offset), 5)
                  : WorkRequest::write(i, from, remote.key, remote.at(offset));
    ASSERT_EQ(scene.run(*pair.near, request).status, Status::success);
    if (immediate) scene.far_completions(1);
    std::copy(from.begin(), from.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
    model.write(offset, length);
    offset += length;
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), scene.far_bytes().begin()));
  const PlacedCounts after = counted();
  EXPECT_EQ(after.past_cache_bytes - before.past_cache_bytes, model.counts.past_cache_bytes);
  EXPECT_EQ(after.persistent_bytes - before.persistent_bytes, model.counts.persistent_bytes);
  EXPECT_EQ(after.cached_lines - before.cached_lines, model.counts.cached_lines);
  // The granule in which the region before ended may be the first one of this.
  EXPECT_LE(after.granules - before.granules, model.counts.granules);
  EXPECT_GE(after.granules - before.granules + 1, model.counts.granules);
}

TEST_P(FabricPlacement, EveryKindByEveryPolicyHasItsBytesAndItsCounts) {
  for (const bool immediate : {false, true}) {
    for (const MemoryKind kind : {volatile_memory, persistent}) {
      for (const PlacementPolicy policy : {adaptive, cache, memory}) {
        SCOPED_TRACE(std::string(name(policy)) +
                     (kind == persistent ? " persistent" : " volatile") +
                     (immediate ? " immediate" : "") + " seed " + std::to_string(seed));
        write_all(kind, policy, immediate);
      }
    }
  }
}

TEST_P(FabricPlacement, AWriteThatIsRefusedIsNotCounted) {
  const auto pair = scene.connect();
  const Registration region = offer(persistent, adaptive);
  const auto from = scene.noise(100);
  const auto request = WorkRequest::write(1, from, region.remote().key,
                                          region.remote().at(FabricScene::kRegionBytes - 99));
  EXPECT_EQ(scene.run(*pair.near, request).status, Status::remote_access);
  EXPECT_EQ(counted().persistent_bytes, 0u);
  EXPECT_EQ(counted().granules, 0u);
}

// The holder's ordinary stores would not be placed as the region demands.
TEST_P(FabricPlacement, MemoryThatIsNotForOrdinaryStoresIsNotHandedOut) {
  const auto pair = scene.connect();
  const auto mapped = [&](const Registration& region) {
    const auto from = scene.noise(8);
    // So that what can be mapped is.
    scene.run(*pair.near, WorkRequest::write(1, from, region.remote().key, region.remote().at(0)));
    return pair.near->writable_memory(region.remote().key, region.remote().at(0), 8) != nullptr;
  };
  EXPECT_FALSE(mapped(offer(persistent, adaptive)));
  EXPECT_FALSE(mapped(offer(persistent, cache)));
  EXPECT_FALSE(mapped(offer(volatile_memory, memory)));
  EXPECT_EQ(mapped(offer(volatile_memory, adaptive)), scene.properties().peer_maps_memory);
}

INSTANTIATE_TEST_SUITE_P(Transports, FabricPlacement, ::testing::ValuesIn(fabric_transports()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace espalier::fabric
