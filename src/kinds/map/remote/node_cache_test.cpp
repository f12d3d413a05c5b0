// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/remote/node_cache.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace espalier::place {
namespace {

std::vector<std::byte> chunk_of(unsigned mark) {
  std::vector<std::byte> bytes(NodeCache::kChunkBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(mark + i);
  return bytes;
}

bool holds(const NodeCache& cache, wire::Ref ref, std::uint32_t chunk, unsigned mark) {
  const std::byte* const found = cache.find(ref, chunk);
  return found != nullptr && std::memcmp(found, chunk_of(mark).data(), NodeCache::kChunkBytes) == 0;
}

TEST(NodeCache, ChunksAreOfOneGenerationOfOneBuffer) {
  NodeCache cache(1 << 20);
  const wire::Ref ref = wire::Ref::make(4096, 7);
  EXPECT_EQ(cache.find(ref, 0), nullptr);
  cache.keep(ref, 0, chunk_of(1));
  cache.keep(ref, 5, chunk_of(2));
  EXPECT_TRUE(holds(cache, ref, 0, 1));
  EXPECT_TRUE(holds(cache, ref, 5, 2));
  EXPECT_EQ(cache.find(ref, 1), nullptr);
  EXPECT_EQ(cache.find(wire::Ref::make(4096, 8), 0), nullptr);
  EXPECT_EQ(cache.find(wire::Ref::make(8192, 7), 0), nullptr);
  EXPECT_EQ(cache.find({}, 0), nullptr);
  cache.keep(ref, 0, chunk_of(3));  // what was kept last counts
  EXPECT_TRUE(holds(cache, ref, 0, 3));
}

TEST(NodeCache, WhatIsShortEndsInZeros) {
  NodeCache cache(1 << 20);
  const wire::Ref ref = wire::Ref::make(4096, 7);
  cache.keep(ref, 0, chunk_of(1));
  cache.keep(ref, 0, std::vector<std::byte>(10, std::byte{9}));
  const std::byte* const found = cache.find(ref, 0);
  ASSERT_NE(found, nullptr);
  for (std::size_t i = 0; i < NodeCache::kChunkBytes; ++i) {
    ASSERT_EQ(found[i], i < 10 ? std::byte{9} : std::byte{0}) << i;
  }
}

TEST(NodeCache, PlacesAreOfOneMap) {
  NodeCache cache(1 << 20);
  EXPECT_FALSE(cache.place(1, 5));
  cache.keep_place(1, 5, wire::Ref::make(512, 1));
  EXPECT_EQ(cache.place(1, 5), wire::Ref::make(512, 1));
  EXPECT_FALSE(cache.place(2, 5));
  EXPECT_FALSE(cache.place(1, 6));
  EXPECT_FALSE(cache.place(0, 0));
  cache.keep_place(1, 5, wire::Ref::make(1024, 2));
  EXPECT_EQ(cache.place(1, 5), wire::Ref::make(1024, 2));
}

TEST(NodeCache, KeepsToItsBytesAndWhatItWasTold) {
  for (const std::uint64_t bytes :
       {std::uint64_t{1}, std::uint64_t{2'000}, std::uint64_t{50'000}}) {
    NodeCache cache(bytes);
    EXPECT_LE(cache.bytes(), bytes);
    base::Random random(bytes);
    std::map<std::pair<std::uint64_t, std::uint32_t>, unsigned> chunks;
    std::map<std::uint32_t, std::uint64_t> places;
    std::uint64_t found = 0;
    for (unsigned i = 0; i < 5'000; ++i) {
      const wire::Ref ref = wire::Ref::make(512 * random.below(100), 1);
      const auto chunk = static_cast<std::uint32_t>(random.below(4));
      const auto lid = static_cast<wire::Lid>(1 + random.below(400));
      if (cache.find(ref, chunk) != nullptr) {
        ++found;
        ASSERT_TRUE(holds(cache, ref, chunk, chunks.at({ref.bits, chunk})));
      }
      if (const wire::Ref place = cache.place(3, lid)) {
        ASSERT_EQ(place.bits, places.at(lid));
      }
      cache.keep(ref, chunk, chunk_of(chunks[{ref.bits, chunk}] = i));
      cache.keep_place(3, lid, {places[lid] = 1 + i});
    }
    const std::uint64_t room = bytes / (NodeCache::kChunkBytes + 16);
    EXPECT_EQ(found != 0, room >= NodeCache::kWays) << bytes;
    if (room > 100) {
      EXPECT_GT(found, 5'000 * room / 400 / 2);
    }
  }
}

// An entry whose first set is full goes to its second one: in a table that is three fifths full
// hardly any is lost.
TEST(NodeCache, AFullSetSendsEntriesToAnother) {
  NodeCache cache(1 << 20);
  const std::uint64_t room = (1 << 20) / 16 * 15 / (NodeCache::kChunkBytes + 16);
  const auto entries = static_cast<unsigned>(room * 3 / 5);
  for (unsigned i = 0; i < entries; ++i) {
    cache.keep(wire::Ref::make(512 * i, 1), 3, chunk_of(i));
    cache.keep_place(1, i + 1, wire::Ref::make(512 * i, 1));
  }
  unsigned kept = 0;
  unsigned places = 0;
  for (unsigned i = 0; i < entries; ++i) {
    const wire::Ref ref = wire::Ref::make(512 * i, 1);
    kept += holds(cache, ref, 3, i) ? 1 : 0;
    cache.forget(ref, 3);
    ASSERT_EQ(cache.find(ref, 3), nullptr);
    const wire::Ref place = cache.place(1, i + 1);
    if (!place) continue;
    ++places;
    ASSERT_EQ(place, ref);
    ASSERT_EQ(cache.move_place(1, i + 1, {}), ref);
    ASSERT_FALSE(cache.place(1, i + 1));
  }
  EXPECT_GT(kept, entries * 98 / 100);  // with one set alone 93
  EXPECT_GT(places, entries * 98 / 100);
}

// A cache of several megabytes is moved to huge pages as it fills, and keeps what it has.
TEST(NodeCache, WhatIsKeptStaysWhereAllOfItIsUsed) {
  NodeCache cache(9 << 20);
  for (unsigned i = 0; i < 20'000; ++i) {
    cache.keep(wire::Ref::make(512 * i, 1), 0, chunk_of(i));
    ASSERT_TRUE(holds(cache, wire::Ref::make(512 * i, 1), 0, i));
  }
  for (unsigned i = 0; i < 20'000; ++i) {
    const std::byte* const found = cache.find(wire::Ref::make(512 * i, 1), 0);
    ASSERT_TRUE(found == nullptr || holds(cache, wire::Ref::make(512 * i, 1), 0, i));
  }
}

// The newest entry of a full set is always there, and what makes room for it is not always the
// same.
TEST(NodeCache, ARandomEntryOfASetMakesRoom) {
  NodeCache cache(2'000);  // one set of chunks
  std::vector<unsigned> survived(64);
  for (unsigned round = 0; round < 50; ++round) {
    for (unsigned i = 0; i < 64; ++i) {
      const wire::Ref ref = wire::Ref::make(512 * i, round + 1);
      cache.keep(ref, 0, chunk_of(i));
      ASSERT_TRUE(holds(cache, ref, 0, i));
    }
    for (unsigned i = 0; i < 64; ++i) {
      survived[i] += cache.find(wire::Ref::make(512 * i, round + 1), 0) != nullptr ? 1 : 0;
    }
  }
  EXPECT_EQ(survived[63], 50u);
  EXPECT_GT(survived[62], 15u);
  EXPECT_LT(survived[62], 50u);
  EXPECT_GT(survived[61] + survived[60] + survived[59] + survived[58] + survived[57], 20u);
}

}  // namespace
}  // namespace espalier::place
