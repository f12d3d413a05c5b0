// SPDX-License-Identifier: Apache-2.0
// Scans in parts are held against what one scan would deliver, wherever they are cut, in whatever
// order the parts are walked, and however little they may keep.
#include "kinds/map/client/parts_of_scan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "espalier/map.hpp"
#include "kinds/map/client/asked_borders.hpp"

namespace espalier::client {
namespace {

using PartModel = std::map<std::string, std::string>;
using PartItems = std::vector<std::pair<std::string, std::string>>;

/// What a walk of the request delivers if the handler does not stop it.
PartItems walk_of(const PartModel& model, const Request& request) {
  const std::string low(request.key);
  const std::string high(request.high);
  auto begin = model.lower_bound(low);
  auto end = high.empty() ? model.end() : model.lower_bound(high);
  if (request.op == Op::scan_floor) {
    begin = model.upper_bound(low);
    if (begin != model.begin() && !low.empty()) --begin;
    if (low.empty()) begin = model.begin();
    if (!high.empty()) end = model.upper_bound(high);
  }
  PartItems items;
  for (auto at = begin; at != end && at != model.end() && (high.empty() || at->first <= high);
       ++at) {
    items.emplace_back(*at);
  }
  if (request.op == Op::scan_reverse) std::ranges::reverse(items);
  if (request.limit != 0 && items.size() > request.limit) items.resize(request.limit);
  return items;
}

/// Walks that go on a few items at a time, by chance.
class ChanceWalks {
 public:
  ChanceWalks(const PartModel& model, base::Random& random, PartsOfScan& scan)
      : model_(model), random_(random), scan_(scan) {}

  void submit(const Request& part) { walks_.push_back({&part, walk_of(model_, part), 0}); }
  void poll() {
    ASSERT_FALSE(walks_.empty()) << "nothing is walked, and the scan is not over";
    const std::size_t which = random_.below(walks_.size());
    Walk& walk = walks_[which];
    std::vector<Item> items;
    for (std::uint64_t n = random_.between(1, 5); n != 0 && walk.at != walk.items.size(); --n) {
      const auto& [key, value] = walk.items[walk.at++];
      items.push_back({key, value, 7});
    }
    const bool more = items.empty() || scan_.items(walk.part->tag, items);
    if (more && walk.at != walk.items.size()) return;
    Completion completion;
    completion.tag = walk.part->tag;
    completion.ok = true;
    completion.read_version = 9;
    walks_.erase(walks_.begin() + static_cast<std::ptrdiff_t>(which));
    scan_.done(completion);
  }

 private:
  struct Walk {
    const Request* part;
    PartItems items;
    std::size_t at;
  };
  const PartModel& model_;
  base::Random& random_;
  PartsOfScan& scan_;
  std::vector<Walk> walks_;
};

/// Stores the delivered items, and stops the scan after `enough` of them.
class PartSink final : public Handler {
 public:
  explicit PartSink(std::size_t enough) : enough_(enough) {}
  void done(const Completion& completion) override {
    ++completions;
    completion_ = completion;
  }
  bool items(std::uint64_t tag, std::span<const Item> items) override {
    EXPECT_EQ(tag, 42u);
    for (const Item& item : items) {
      EXPECT_EQ(item.version, 7u);
      if (seen.size() < enough_) seen.emplace_back(item.key, item.value);
    }
    return seen.size() < enough_;
  }
  PartItems seen;
  int completions = 0;
  Completion completion_;

 private:
  const std::size_t enough_;
};

std::string short_key(base::Random& random) {
  std::string key(random.between(1, 3), 'a');
  for (char& letter : key) letter = static_cast<char>('a' + random.below(5));
  return key;
}

Request chance_scan(base::Random& random, std::string& low, std::string& high) {
  constexpr Op kOps[] = {Op::scan, Op::scan_reverse, Op::scan_floor};
  low = random.below(4) == 0 ? "" : short_key(random);
  high = random.below(4) == 0 ? "" : short_key(random);
  Request scan;
  scan.op = kOps[random.below(3)];
  scan.tag = 42;
  scan.key = low;
  scan.high = high;
  if (random.below(3) == 0) scan.limit = static_cast<std::uint32_t>(random.between(1, 30));
  return scan;
}

TEST(PartsOfScan, DeliverWhatOneScanWould) {
  base::Random random(base::seed_from_environment(45));
  std::uint64_t cut = 0;
  for (int round = 0; round < 3'000; ++round) {
    PartModel model;
    for (std::uint64_t n = random.below(120); n != 0; --n) {
      model[short_key(random)] = std::string(random.below(40), 'v');
    }
    std::string low;
    std::string high;
    const Request scan = chance_scan(random, low, high);
    std::vector<std::string> borders;
    for (std::uint64_t n = random.below(8); n != 0; --n) borders.push_back(short_key(random));
    if (random.below(4) != 0) std::ranges::sort(borders);
    const std::size_t enough = random.below(4) == 0 ? random.between(1, 20) : ~std::size_t{0};
    PartSink sink(enough);
    PartsOfScan parts(scan, borders, sink, random.below(2) == 0 ? random.below(200) : 1'000'000);
    cut += parts.size() > 1 ? 1 : 0;
    ChanceWalks walks(model, random, parts);
    walk_parts(parts, [&](const Request& part) { walks.submit(part); }, [&] { walks.poll(); });
    ASSERT_EQ(sink.completions, 0);
    parts.finish();
    ASSERT_EQ(sink.completions, 1);
    EXPECT_TRUE(sink.completion_.ok);
    EXPECT_EQ(sink.completion_.tag, 42u);
    EXPECT_EQ(sink.completion_.read_version, 9u);
    PartItems wanted = walk_of(model, scan);
    if (wanted.size() > enough) wanted.resize(enough);
    ASSERT_EQ(sink.seen, wanted) << "round " << round;
    ASSERT_GE(sink.completion_.items, wanted.size());
  }
  EXPECT_GT(cut, 1'000u) << "hardly any was cut";
}

TEST(PartsOfScan, EndWithTheErrorOfAPart) {
  std::string low = "a";
  Request scan;
  scan.op = Op::scan;
  scan.key = low;
  PartSink sink(100);
  PartsOfScan parts(scan, {"b", "c"}, sink);
  ASSERT_EQ(parts.size(), 3u);
  const Request* const first = parts.next_due();
  const Request* const second = parts.next_due();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(first->key, "a");
  EXPECT_EQ(first->high, "b");
  EXPECT_EQ(second->key, "b");
  parts.refuse(*second, {Code::snapshot_expired, 0, 3});
  EXPECT_EQ(parts.next_due(), nullptr) << "the third need not begin";
  EXPECT_FALSE(parts.is_over()) << "the first is being walked";
  const Item item{"a", "v", 7};
  EXPECT_FALSE(parts.items(first->tag, {&item, 1}));
  Completion completion;
  completion.tag = first->tag;
  completion.ok = true;
  parts.done(completion);
  EXPECT_TRUE(parts.is_over());
  parts.finish();
  EXPECT_FALSE(sink.completion_.ok);
  EXPECT_EQ(sink.completion_.error, (Error{Code::snapshot_expired, 0, 3}));
  EXPECT_EQ(sink.completion_.items, 0u);
}

// A node may send anything: what no walk of a part can deliver is not kept, and no walk goes on
// from there.
TEST(PartsOfScan, EndWhereAPartBringsWhatIsNotItsOwn) {
  struct Lie {
    Op op;
    std::vector<std::string> keys;  // of the second part, [b, c)
    std::size_t taken;              // of these
  };
  const Lie lies[] = {{Op::scan, {"b1", "c"}, 1},
                      {Op::scan, {"b1", "z"}, 1},
                      {Op::scan, {"a"}, 0},
                      {Op::scan, {"b2", "b1"}, 1},
                      {Op::scan, {"b2", "b2"}, 1},
                      {Op::scan_reverse, {"b2", "b3"}, 1},
                      {Op::scan_reverse, {"c"}, 0},
                      {Op::scan_reverse, {"b1", "a"}, 1},
                      {Op::scan_floor, {"b1", "b0"}, 1},
                      {Op::scan, {"b" + std::string(600, 'b')}, 0},
                      {Op::scan, {"b", "b1", "b11"}, 3},
                      {Op::scan_reverse, {"b1", "b"}, 2},
                      {Op::scan_floor, {"a", "b", "b1"}, 3}};
  for (const Lie& lie : lies) {
    Request scan;
    scan.op = lie.op;
    scan.tag = 42;
    scan.key = "a";
    scan.high = "d";
    PartSink sink(100);
    PartsOfScan parts(scan, {"b", "c"}, sink);
    ASSERT_EQ(parts.size(), 3u);
    const Request* const first = parts.next_due();
    const Request* const second = parts.next_due();
    ASSERT_NE(second, nullptr);
    std::size_t taken = 0;
    for (const std::string& key : lie.keys) {
      const Item item{key, "v", 7};
      if (!parts.items(second->tag, {&item, 1})) break;
      ++taken;
    }
    EXPECT_EQ(taken, lie.taken) << lie.keys.front();
    const bool is_lie = lie.taken != lie.keys.size();
    EXPECT_EQ(parts.next_due() == nullptr, is_lie);
    Completion completion;
    completion.ok = true;
    for (std::uint64_t tag = 0; tag < (is_lie ? 2u : 3u); ++tag) {
      completion.tag = tag;
      parts.done(completion);
    }
    ASSERT_NE(first, nullptr);
    ASSERT_TRUE(parts.is_over());
    parts.finish();
    EXPECT_EQ(sink.completion_.ok, !is_lie);
    EXPECT_EQ(sink.completion_.error.code, is_lie ? Code::corrupt : Code::invalid);
  }
}

// Of a node that lies no more is taken than there is.
TEST(PartsOfScan, BordersAreReadAsFarAsTheyGo) {
  using namespace std::string_literals;
  using Keys = std::vector<std::string>;
  EXPECT_EQ(borders_in(""), Keys{});
  EXPECT_EQ(borders_in("\1\0a\2\0bc"s), (Keys{"a", "bc"}));
  EXPECT_EQ(borders_in("\1\0a\2\0b"s), Keys{"a"});
  EXPECT_EQ(borders_in("\1\0a\xFF\xFF"s), Keys{"a"});
  EXPECT_EQ(borders_in("\1\0a\1"s), Keys{"a"});
  std::string many;
  for (int i = 0; i < 1000; ++i) many.append("\0\0"s);
  EXPECT_EQ(borders_in(many).size(), ScanOptions::kPartsMax);
}

}  // namespace
}  // namespace espalier::client
