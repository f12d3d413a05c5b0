// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/log_merge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kinds/map/testing/leaf_model.hpp"
#include "kinds/map/write/leaf_write.hpp"

namespace espalier::tree {
namespace {

struct OneWrite {
  std::string key;
  std::string value;
  bool erase = false;
};

// Merges by runs, and by gathering all items, and expects the same bytes. Returns whether the
// result fits a leaf.
bool merges_alike(const LeafModel& model, const OneWrite& write) {
  const Geometry& g = model.geometry();
  SearchKey key;
  key.assign(write.key);
  WriteIntent intent;
  intent.op = write.erase ? Op::erase : Op::put;
  intent.key = &key;
  intent.value = write.value;
  intent.out_of_line = write.value == LeafModel::stored_value();

  NewestState state;
  state.probe = probe_leaf(model.view(), key, best_search_kit());
  state.position = lower_bound(model.view(), key, state.probe);
  const LogMerge merge(model.view(), intent, state);

  std::vector<Record> records;
  gather_newest(model.view(), records);
  apply_to_records(records, intent);
  EXPECT_EQ(merge.bytes(), placed_bytes(records, g));
  if (merge.bytes() > leaf_room(g, model.low(), model.high())) return false;

  NodeFrame frame;
  frame.map_id = 1;
  frame.lid = 7;
  frame.low = model.low();
  frame.high = model.high();
  NodeBuffer by_runs(g);
  NodeBuffer by_items(g);
  merge.build(by_runs.data(), frame);
  build_leaf(by_items.data(), g, records, frame);
  std::byte* const end = by_runs.data() + g.node_bytes;
  const auto differ = std::mismatch(by_runs.data(), end, by_items.data());
  EXPECT_EQ(differ.first, end) << "differ at " << differ.first - by_runs.data();
  return true;
}

// The n-th key of those that are there.
std::string key_at(const LeafModel::Items& items, std::size_t n) {
  return std::next(items.begin(), static_cast<std::ptrdiff_t>(n))->first;
}

TEST(LogMerge, MakesTheSameBytesAsGatheringAllItems) {
  base::Random random(base::seed_from_environment(23));
  int fitted = 0;
  for_many_leaves(random, [&](LeafModel& model) {
    // Where there is room, the log has a value that lies elsewhere; one of the writes is another.
    static_cast<void>(model.append(model.key(random), LeafModel::stored_value()));
    std::vector<OneWrite> writes{{model.key(random), model.value(random)},
                                 {model.low().empty() ? "\x01" : model.low() + '\x01', "first"},
                                 {model.high().empty() ? "\xFE\xFF" : model.key(random), "last"}};
    const LeafModel::Items& newest = model.newest();
    if (!newest.empty()) {
      const std::string any = key_at(newest, random.below(newest.size()));
      const std::string first = newest.begin()->first;
      const std::string last = newest.rbegin()->first;
      for (const std::string& key : {any, first, last}) {
        writes.push_back({key, model.value(random)});
        writes.push_back({key, std::string(newest.at(key).size(), 'x')});
        writes.push_back({key, "", true});
        writes.push_back({key, LeafModel::stored_value()});
      }
    }
    for (const auto& [key, value] : model.sorted()) {
      if (newest.contains(key)) continue;
      writes.push_back({key, "there again"});
      break;
    }
    for (const OneWrite& write : writes) {
      SCOPED_TRACE("key '" + write.key + "', " + (write.erase ? "erased" : write.value));
      fitted += merges_alike(model, write) ? 1 : 0;
      if (::testing::Test::HasFailure()) FAIL();
    }
  });
  EXPECT_GT(fitted, 100);
}

// The usual case: nothing moves, whatever of the leaf is written.
TEST(LogMerge, ValuesOfTheSameLengthsMoveNothing) {
  base::Random random(base::seed_from_environment(24));
  LeafModel model({});
  LeafModel::Items items;
  for (int i = 0; i < 100; ++i)
    items.emplace("key-" + std::to_string(1'000'000 + 7 * i), "sixteen bytes!!!");
  model.build(items);
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(model.append(key_at(items, random.below(items.size())), "SIXTEEN BYTES!!!"));
  }
  for (const auto& [key, value] : items) {
    SCOPED_TRACE(key);
    ASSERT_TRUE(merges_alike(model, {key, "another value..."}));
    if (HasFailure()) FAIL();
  }
}

TEST(LogMerge, ALogThatErasesAllLeavesAnEmptyBlock) {
  LeafModel model({});
  model.build(LeafModel::Items{{"a", "1"}, {"b", "2"}, {"c", "3"}});
  ASSERT_TRUE(model.append("a", std::nullopt));
  ASSERT_TRUE(model.append("c", std::nullopt));
  EXPECT_TRUE(merges_alike(model, {"b", "", true}));
}

}  // namespace
}  // namespace espalier::tree
