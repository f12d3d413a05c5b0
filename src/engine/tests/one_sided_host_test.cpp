// SPDX-License-Identifier: Apache-2.0
#include "engine/one_sided_host.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/map/format/mapping_feed.hpp"
#include "kinds/map/offload/indexed_reads.hpp"
#include "kinds/map/write/map_object.hpp"
#include "wire/one_sided.hpp"

namespace espalier::offload {
namespace {

memory::Region shared_region() {
  auto region = memory::Region::reserve(
      {.bytes_max = std::uint64_t{64} << 20, .huge_pages = false, .shared = true});
  EXPECT_TRUE(region) << message(region.error());
  return std::move(*region);
}

class Following : public ::testing::Test {
 protected:
  struct Session {
    OneSidedHost memory;
    fabric::RegionTable& regions;
    IndexedReads reads{memory, regions, nullptr};

    Result<wire::FeedPlace> follow(const std::shared_ptr<tree::MapCore>& map) {
      return reads.follow(map);
    }
    void fence() {
      memory.fence();
      reads.fence();
    }
  };
  std::unique_ptr<Session> session(std::uint64_t number) {
    return std::unique_ptr<Session>(
        new Session{{store_, *regions_, fabric::Domain{3}, number}, *regions_});
  }
  std::unique_ptr<Session> leased_session(std::uint64_t number) {
    auto made = session(number);
    EXPECT_TRUE(made->memory.offer());
    EXPECT_TRUE(made->memory.grant(1));
    return made;
  }
  std::shared_ptr<tree::MapCore> make_map(const std::string& name) {
    return *tree::create_map(store_, name, {.node_bytes = 512});
  }
  static std::uint32_t followers(const std::shared_ptr<tree::MapCore>& map) {
    return map->table.feed().followers();
  }

  tree::StoreCore store_{shared_region(), 16};
  std::shared_ptr<fabric::RegionTable> regions_ = *fabric::RegionTable::create(1);
};

TEST_F(Following, AskedAgainItSaysTheSame) {
  const auto map = make_map("m");
  const auto one = leased_session(1);
  const auto place = one->follow(map);
  ASSERT_TRUE(place) << message(place.error());
  EXPECT_EQ(place->entries, wire::kFeedEntries);
  const auto again = one->follow(map);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->offset, place->offset);
  EXPECT_EQ(followers(map), 1u);
  const auto other = leased_session(2);
  EXPECT_EQ(other->follow(map)->offset, place->offset);
  EXPECT_EQ(followers(map), 2u);
}

TEST_F(Following, ItEndsWithTheSessionsLeasesOrWithIt) {
  const auto map = make_map("m");
  const auto one = leased_session(1);
  auto two = leased_session(2);
  ASSERT_TRUE(one->follow(map));
  ASSERT_TRUE(two->follow(map));
  one->fence();
  EXPECT_EQ(followers(map), 1u);
  EXPECT_EQ(one->follow(map).error().code, Code::not_found);
  two.reset();
  EXPECT_EQ(followers(map), 0u);
}

TEST_F(Following, WhoHoldsNoLeaseFollowsNothing) {
  const auto map = make_map("m");
  EXPECT_EQ(session(1)->follow(map).error().code, Code::not_found);
  EXPECT_EQ(followers(map), 0u);
  EXPECT_EQ(map->table.feed().offset(), 0u);
}

TEST_F(Following, ASessionFollowsABoundedNumberOfMapsOfThoseThatAreThere) {
  const auto one = leased_session(1);
  std::vector<std::shared_ptr<tree::MapCore>> maps;
  for (int i = 0; i < 64; ++i) {
    maps.push_back(make_map(std::to_string(i)));
    const auto place = one->follow(maps.back());
    ASSERT_TRUE(place) << message(place.error());
  }
  const auto more = make_map("more");
  EXPECT_EQ(one->follow(more).error().code, Code::out_of_memory);
  ASSERT_TRUE(one->follow(maps.front()));
  // A dropped map makes room.
  ASSERT_TRUE(store_.catalog.drop<tree::MapCore>("7"));
  maps.erase(maps.begin() + 7);
  EXPECT_TRUE(one->follow(more));
}

// Its session is not fenced: the reader declares that it reads nothing under the lease.
TEST_F(Following, ALeaseThatIsGivenBackEndsAlone) {
  const auto one = session(1);
  ASSERT_TRUE(one->memory.offer());
  const auto first = one->memory.grant(1);
  const auto second = one->memory.grant(1);
  ASSERT_TRUE(first && second);
  const fabric::RegionKey key = one->memory.key();
  EXPECT_EQ(session(2)->memory.renew(first->id, wire::kLeaseGivenBack, 2).error().code,
            Code::not_found);
  EXPECT_TRUE(one->memory.renew(first->id, wire::kLeaseGivenBack, 2));
  EXPECT_EQ(store_.leases.size(), 1u);
  for (const std::uint64_t oldest : {first->epoch, wire::kLeaseGivenBack}) {
    EXPECT_EQ(one->memory.renew(first->id, oldest, 3).error().code, Code::not_found);
  }
  EXPECT_TRUE(one->memory.renew(second->id, second->epoch, 3));
  EXPECT_EQ(one->memory.key(), key);
  // Its place is reused.
  for (int i = 0; i < 63; ++i) EXPECT_TRUE(one->memory.grant(4));
  EXPECT_EQ(one->memory.grant(4).error().code, Code::out_of_memory);
  EXPECT_TRUE(one->memory.renew(second->id, wire::kLeaseGivenBack, 5));
  EXPECT_TRUE(one->memory.grant(6));
}

class FeedOffload : public ::testing::Test {
 protected:
  SchedulerFixture node_;
  SchedulerFixture::Client& client_ = node_.connect();
};

TEST_F(FeedOffload, WhoCannotReadTheMemoryIsRefused) {
  const Response response =
      node_.call(client_, request_of(wire::OffloadId::feed_open, node_.map(), 1));
  EXPECT_TRUE(response.answers());
  EXPECT_EQ(response.code(), Code::unsupported);
  EXPECT_EQ(node_.call(client_, request_of(wire::OffloadId::feed_open, 9999, 2)).code(),
            Code::not_found);
}

}  // namespace
}  // namespace espalier::offload
