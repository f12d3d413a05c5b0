// SPDX-License-Identifier: Apache-2.0
// The check finds what is wrong: with maps that answer well but for one thing, and with sound ones.
#include "tools/map_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/random.hpp"

namespace espalier::tools {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint32_t kMaxKeyBytes = 8;

/// Answers as a map with these items, with wrong answers where a test asks for them.
struct Lies {
  std::string get_loses{};        ///< this key
  std::string get_changes{};      ///< the value of this key
  std::string get_invents{};      ///< this key
  std::string floor_skips{};      ///< this key
  std::string floor_changes{};    ///< the value of this key
  std::string reverse_loses{};    ///< this key
  std::string reverse_changes{};  ///< the value of this key
  std::string reverse_invents{};  ///< this key, at the end of everything
  std::string repeats{};          ///< this key, ascending
  bool ignores_limits = false;
  std::uint64_t counts_more = 0;  ///< for ranges with an end
  std::uint64_t counts_more_in_all = 0;
  std::string fails_behind{};  ///< ascending scans that begin there, with:
  Error error{};
  int times = 1 << 30;  ///< that often
};

using Items = std::map<std::string, std::string>;

class FakeAnswers final : public Answers {
 public:
  FakeAnswers(const Items& items, Lies& lies) : items_(items), lies_(lies) {}

  Result<std::uint64_t> scan(std::string_view low, std::string_view high, const ItemSink& sink,
                             ScanOptions options) override {
    if (!options.reverse && !lies_.fails_behind.empty() && low >= lies_.fails_behind &&
        lies_.times-- > 0) {
      return std::unexpected(lies_.error);
    }
    std::vector<std::pair<std::string, std::string>> found;
    for (const auto& [key, value] : items_) {
      if (key < low || (!high.empty() && key >= high)) continue;
      if (options.reverse && key == lies_.reverse_loses) continue;
      found.emplace_back(key, options.reverse && key == lies_.reverse_changes ? "x" : value);
      if (!options.reverse && key == lies_.repeats) found.emplace_back(key, value);
    }
    if (options.reverse) std::ranges::reverse(found);
    if (options.reverse && !lies_.reverse_invents.empty()) {
      found.emplace_back(lies_.reverse_invents, "");
    }
    const bool limited = options.limit != 0 && !lies_.ignores_limits;
    if (limited && found.size() > options.limit) found.resize(options.limit);
    std::uint64_t delivered = 0;
    for (const auto& [key, value] : found) {
      const Item item{key, value, 1};
      ++delivered;
      if (!sink({&item, 1})) break;
    }
    return delivered;
  }
  Result<std::uint64_t> count(std::string_view low, std::string_view high) override {
    std::uint64_t counted = high.empty() ? lies_.counts_more_in_all : lies_.counts_more;
    for (const auto& [key, value] : items_) counted += key >= low && (high.empty() || key < high);
    return counted;
  }
  Result<std::optional<Found>> get(std::string_view key) override {
    if (key == lies_.get_invents) return Found{"x", 1};
    const auto at = items_.find(std::string(key));
    if (at == items_.end() || key == lies_.get_loses) return std::nullopt;
    return Found{key == lies_.get_changes ? "x" : at->second, 1};
  }
  Result<std::optional<FoundItem>> floor(std::string_view key) override {
    auto at = items_.upper_bound(std::string(key));
    if (at != items_.begin() && std::prev(at)->first == lies_.floor_skips) --at;
    if (at == items_.begin()) return std::nullopt;
    --at;
    return FoundItem{at->first, at->first == lies_.floor_changes ? "x" : at->second, 1};
  }

 private:
  const Items& items_;
  Lies& lies_;
};

class MapCheckTest : public ::testing::Test {
 protected:
  MapCheckTest() {
    options.max_key_bytes = kMaxKeyBytes;
    options.stretch_items = 4;
    for (const std::string key : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) {
      items[key] = "value of " + key;
    }
  }
  MapCheckReport check() {
    return check_map(
        [this]() -> Result<std::unique_ptr<Answers>> {
          return std::make_unique<FakeAnswers>(items, lies);
        },
        options, [this] { return clock_ns += tick_ns; });
  }
  std::vector<std::string> faults() { return check().faults; }

  Items items;
  Lies lies;
  MapCheckOptions options;
  std::uint64_t clock_ns = 0;
  std::uint64_t tick_ns = 0;
};

TEST_F(MapCheckTest, FindsNothingWrongWithWhatIsSound) {
  const MapCheckReport report = check();
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_EQ(report.items, 10U);
  EXPECT_EQ(report.gets, 10U + 7);  // of each key, and of one behind each but the last of a stretch
  EXPECT_EQ(report.floors, 10U + 7 + 1);
  EXPECT_EQ(report.versions, 1U);
  EXPECT_TRUE(report.counted_in_all);
}

TEST_F(MapCheckTest, FindsNothingWrongWithHardKeysHoweverTheyFallIntoStretches) {
  using namespace std::string_literals;
  for (const std::string& key :
       {"\0"s, "\0\0"s, "\0\0\0\0\0\0\0\0"s, "a"s, "a\0"s, "a\0\0\0\0\0\0\0"s, "a\0\0\0\0\0\0\1"s,
        "a\xff\xff\xff\xff\xff\xff\xff"s, "\xff"s, "\xff\xff\xff\xff\xff\xff\xff\xff"s}) {
    items[key] = key;
  }
  for (options.stretch_items = 1; options.stretch_items < 25; ++options.stretch_items) {
    const MapCheckReport report = check();
    EXPECT_THAT(report.faults, IsEmpty()) << options.stretch_items;
    EXPECT_EQ(report.items, items.size());
  }
  items.clear();
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(MapCheckTest, NamesTheKeyOfEachFault) {
  lies = {.get_loses = "c"};
  EXPECT_THAT(faults(), Contains("a get does not find key 'c', which a scan delivers"));
  lies = {.get_changes = "c"};
  EXPECT_THAT(faults(), Contains("a get of key 'c' finds another value than a scan"));
  lies = {.get_invents = std::string("c\0", 2)};
  EXPECT_THAT(faults(), Contains("a get finds key 'c\\x00', which no scan delivers"));
  lies = {.floor_skips = "c"};
  EXPECT_THAT(faults(), Contains("the floor of key 'c' is key 'b' where a scan delivers key 'c'"));
  lies = {.floor_skips = "a"};
  EXPECT_THAT(faults(), Contains("there is no floor of key 'a', where a scan delivers key 'a'"));
  lies = {.floor_changes = "c"};
  EXPECT_THAT(faults(), Contains("the floor of key 'c' has another value than a scan delivers"));
}

TEST_F(MapCheckTest, ComparesTheTwoDirections) {
  lies = {.reverse_loses = "g"};
  EXPECT_THAT(faults(), ElementsAre("a descending scan delivers key 'f' where an ascending one "
                                    "delivers key 'g'"));
  lies = {.reverse_loses = "e"};  // the last one of a stretch, seen from behind
  EXPECT_THAT(faults(), ElementsAre("a descending scan lacks key 'e', which an ascending one "
                                    "delivers"));
  lies = {.reverse_changes = "h"};
  EXPECT_THAT(faults(),
              ElementsAre("scans in the two directions deliver different values for key 'h'"));
  lies = {.reverse_invents = "0"};
  EXPECT_THAT(faults(), Contains("a descending scan delivers key '0' where an ascending one "
                                 "delivers nothing"));
}

TEST_F(MapCheckTest, StopsWhereKeysDoNotAscend) {
  lies = {.repeats = "f"};
  EXPECT_THAT(faults(), ElementsAre("an ascending scan delivers key 'f' after 'f'"));
}

TEST_F(MapCheckTest, TakesNoMoreThanItAskedFor) {
  lies = {.ignores_limits = true};
  EXPECT_THAT(faults(),
              ElementsAre("an ascending scan delivers key 'e', and more items than it was "
                          "asked for"));
}

TEST_F(MapCheckTest, ComparesCounts) {
  lies = {.counts_more = 1};
  EXPECT_THAT(faults(), Contains("5 items are counted from key 'a' on, up to key 'd', where a scan "
                                 "delivers 4"));
  lies = {.counts_more_in_all = 2};
  EXPECT_THAT(faults(), ElementsAre("12 items are counted in all where scans deliver 10, up to "
                                    "'j'"));
}

TEST_F(MapCheckTest, TellsNoMoreThanTwentyFaults) {
  options.stretch_items = 1;
  for (int i = 0; i < 100; ++i) items["k" + std::to_string(i)] = "";
  lies = {.counts_more = 1};
  EXPECT_EQ(faults().size(), MapCheckReport::kFaultsMax);
}

// Without versions others may write between two questions; orders hold all the same.
TEST_F(MapCheckTest, LooksAtOrdersOnlyWhereNothingIsSteady) {
  options.steady = false;
  lies = {.get_loses = "c", .floor_skips = "d", .reverse_loses = "g", .counts_more = 1};
  MapCheckReport report = check();
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_EQ(report.items, 10U);
  EXPECT_EQ(report.gets, 0U);
  EXPECT_FALSE(report.counted_in_all);
  lies = {.repeats = "f"};
  EXPECT_THAT(faults(), ElementsAre("an ascending scan delivers key 'f' after 'f'"));
  lies = {.reverse_invents = "z"};
  EXPECT_THAT(faults(), Contains("a descending scan delivers key 'z' after 'a'"));
}

TEST_F(MapCheckTest, HoldsNoVersionForLong) {
  tick_ns = options.hold_ns;
  const MapCheckReport report = check();
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_EQ(report.items, 10U);
  EXPECT_EQ(report.versions, 3U);
  EXPECT_FALSE(report.counted_in_all);
}

TEST_F(MapCheckTest, BeginsAStretchAgainWhoseVersionWasGivenUp) {
  lies = {.fails_behind = "d", .error = {Code::snapshot_expired, 0, 0}, .times = 3};
  const MapCheckReport report = check();
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_FALSE(report.stopped_by);
  EXPECT_EQ(report.items, 10U);
  EXPECT_EQ(report.versions, 4U);
  lies.times = 1 << 30;
  EXPECT_EQ(check().stopped_by->code, Code::snapshot_expired);
}

TEST_F(MapCheckTest, TellsALostNodeFromABrokenMap) {
  lies = {.fails_behind = "d", .error = {Code::connection_lost, 0, 0}};
  MapCheckReport report = check();
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_EQ(report.stopped_by->code, Code::connection_lost);
  lies.error = {Code::corrupt, 0, 0};
  report = check();
  EXPECT_FALSE(report.stopped_by);
  EXPECT_THAT(report.faults, ElementsAre(HasSubstr("an ascending scan fails behind 'd\\x00': ")));
}

TEST(MapCheckOnAMap, FindsNothingWrongWithIt) {
  for (const bool versions : {true, false}) {
    auto store = Store::open({.memory_bytes_max = std::uint64_t{64} << 20, .huge_pages = false});
    ASSERT_TRUE(store);
    auto map = store->create_map("m", {.node_bytes = 512, .log_bytes = 128, .versions = versions});
    ASSERT_TRUE(map);
    base::Random random(7);
    for (int i = 0; i < 20'000; ++i) {
      ASSERT_TRUE(map->put(std::to_string(random.below(50'000)), std::string(i % 40, 'v')));
    }
    MapCheckOptions options;
    options.max_key_bytes = map->max_key_bytes();
    const MapCheckReport report = check_map(answers_of(*map), options, [] { return 0; });
    EXPECT_THAT(report.faults, IsEmpty());
    EXPECT_EQ(report.items, map->stats()->items);
    EXPECT_TRUE(report.counted_in_all);
  }
}

}  // namespace
}  // namespace espalier::tools
