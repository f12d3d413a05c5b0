// SPDX-License-Identifier: Apache-2.0
#include "store/clock_groups.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/places.hpp"
#include "store/store_core.hpp"

namespace espalier::store {
namespace {

memory::Region small_region() {
  return std::move(
      *memory::Region::reserve({.bytes_max = std::uint64_t{32} << 20, .huge_pages = false}));
}

class ClockGroupsTest : public ::testing::Test {
 protected:
  ClockMember join(const std::string& name, std::optional<Durability> own = {}) {
    auto joined = groups_.join(name, own);
    EXPECT_TRUE(joined) << message(joined.error());
    return std::move(*joined);
  }
  [[nodiscard]] std::uint64_t word_at(std::uint64_t place) const {
    return base::load_shared<std::uint64_t>(core_.region.at(place));
  }

  tree::StoreCore core_{small_region(), 16};
  ClockGroups& groups_ = *core_.groups;
};

TEST_F(ClockGroupsTest, ObjectsOfOneNameHaveOneClockAndOthersAnother) {
  const auto a = join("a");
  const auto again = join("a");
  const auto b = join("b");
  EXPECT_EQ(a.clock(), again.clock());
  EXPECT_NE(a.clock(), b.clock());
  EXPECT_EQ(groups_.size(), 2u);
  EXPECT_EQ(groups_.buffers().size(), 2u);
}

TEST_F(ClockGroupsTest, ThoseThatNameNoneShareOneOnlyWhereTheStoreDoes) {
  EXPECT_FALSE(groups_.any());
  EXPECT_EQ(join("").clock(), nullptr);
  groups_.share();
  EXPECT_TRUE(groups_.any());
  const auto one = join("");
  const auto other = join("");
  EXPECT_NE(one.clock(), nullptr);
  EXPECT_EQ(one.clock(), other.clock());
  EXPECT_NE(join("a").clock(), one.clock());
}

// Versions of these come again after a crash.
TEST_F(ClockGroupsTest, ObjectsThatACrashMayLoseHaveAClockOfTheirOwn) {
  const auto kept = join("a");
  const auto lost = join("a", Durability::none);
  EXPECT_NE(kept.clock(), lost.clock());
  EXPECT_EQ(join("a", Durability::sync).clock(), kept.clock());
  EXPECT_EQ(join("a", Durability::none).clock(), lost.clock());
  EXPECT_EQ(groups_.size(), 1u);
}

TEST_F(ClockGroupsTest, TheWordsLieWhereTheyAreSaidToLie) {
  const auto a = join("a");
  memory::VersionClock& clock = a.clock()->clock();
  const std::uint64_t place = a.clock()->place();
  EXPECT_TRUE(wire::is_clock_place(place, core_.region.bytes()));
  const std::uint64_t first = clock.take();
  const std::uint64_t second = clock.take();
  EXPECT_EQ(word_at(place), 0u);
  EXPECT_EQ(word_at(place + wire::kWriteVersionBehind), second);
  clock.done(first);
  EXPECT_EQ(word_at(place), first);
  clock.done(second);
  EXPECT_EQ(word_at(place), second);
  const std::uint64_t buffer = place - offsetof(wire::GroupClock, read_version);
  EXPECT_EQ(groups_.buffers(), std::vector<std::uint64_t>{buffer});
  const auto header = base::load_plain<wire::BufferHeader>(core_.region.at(buffer));
  EXPECT_EQ(header.map_id, 0u);
  EXPECT_EQ(header.created, wire::kNoNode);
  EXPECT_EQ(header.superseded, wire::kLive);
}

TEST_F(ClockGroupsTest, ThereAre64GroupsAndARefusalSaysSo) {
  std::vector<ClockMember> members;
  for (std::size_t i = 0; i < ClockGroups::kGroupsMax; ++i) {
    members.push_back(join("group" + std::to_string(i)));
  }
  const auto refused = groups_.join("one more", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::too_many_participants);
  EXPECT_EQ(base::places_of(refused.error()), base::Places::clock_groups);
  EXPECT_NE(message(refused.error()).find("64 groups"), std::string::npos);
  EXPECT_EQ(join("group7").clock(), members[7].clock()) << "one that is there takes more";
  groups_.share();
  EXPECT_NE(join("").clock(), nullptr) << "that of those that name none is none of them";
  EXPECT_EQ(groups_.size(), ClockGroups::kGroupsMax);
}

// Who still has an object that was dropped may go on taking versions.
TEST_F(ClockGroupsTest, AGroupThatNoObjectIsOfGivesItsClockToTheNextWhichGoesOn) {
  auto dropped = join("a");
  memory::VersionClock& clock = dropped.clock()->clock();
  clock.done(clock.take());
  std::vector<ClockMember> members;
  for (std::size_t i = 1; i < ClockGroups::kGroupsMax; ++i) {
    members.push_back(join("group" + std::to_string(i)));
  }
  ASSERT_FALSE(groups_.join("b", {}));
  {
    auto other = join("a");
    dropped.leave();
    dropped.leave();
    ASSERT_FALSE(groups_.join("b", {})) << "another object is of it";
  }
  const auto next = join("b");
  EXPECT_EQ(&next.clock()->clock(), &clock);
  EXPECT_EQ(clock.taken(), 1u);
  EXPECT_EQ(dropped.clock(), next.clock());
  EXPECT_EQ(groups_.buffers().size(), ClockGroups::kGroupsMax);
  ASSERT_FALSE(groups_.join("a", {})) << "its name went with it";
}

TEST_F(ClockGroupsTest, AMemberThatIsMovedIsCountedOnce) {
  auto first = join("a");
  {
    const ClockMember second = std::move(first);
    EXPECT_EQ(groups_.size(), 1u);
    EXPECT_EQ(first.clock(), nullptr);
  }
  EXPECT_EQ(groups_.size(), 0u);
}

TEST(GroupClock, LiesWithBothItsWordsInTheRegion) {
  constexpr std::uint64_t kBytes = 4096;
  EXPECT_TRUE(wire::is_clock_place(0, kBytes));
  EXPECT_TRUE(wire::is_clock_place(kBytes - 128, kBytes));
  EXPECT_FALSE(wire::is_clock_place(kBytes - 64, kBytes));
  EXPECT_FALSE(wire::is_clock_place(kBytes, kBytes));
  EXPECT_FALSE(wire::is_clock_place(8, kBytes));
  EXPECT_FALSE(wire::is_clock_place(~std::uint64_t{63}, kBytes));
  EXPECT_FALSE(wire::is_clock_place(0, 64));
}

}  // namespace
}  // namespace espalier::store
