// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/node/leaf_builder.hpp"

#include <gtest/gtest.h>

#include "kinds/map/testing/leaf_model.hpp"

namespace espalier::tree {
namespace {

using Items = LeafModel::Items;

Items sorted_items(const NodeView& leaf) {
  Items items;
  for (std::uint32_t at = leaf.geometry().sorted_begin; at < leaf.sorted_end();) {
    const SortedItem item = leaf.sorted_item(at);
    items.emplace(item.key, std::string_view(item.value, item.value_bytes));
    EXPECT_EQ(items.rbegin()->first, item.key) << "ascending";
    at = item.end;
  }
  return items;
}

TEST(LeafBuilder, WhatWasBuiltIsReadBack) {
  base::Random random(base::seed_from_environment(21));
  for_many_leaves(random, [](const LeafModel& model) {
    const NodeView leaf = model.view();
    ASSERT_EQ(sorted_items(leaf), model.sorted());
    ASSERT_EQ(leaf.items(), model.sorted().size());
    ASSERT_EQ(leaf.low_fence(), model.low());
    ASSERT_EQ(leaf.high_fence(), model.high());
    ASSERT_TRUE(leaf.leaf());
    ASSERT_EQ(leaf.created(), LeafModel::kCreated);
    ASSERT_EQ(leaf.superseded(), wire::kLive);
    ASSERT_EQ(leaf.prefix_bytes(), model.low().empty() ? 0 : model.low().size() - 1);
  });
}

TEST(LeafBuilder, GatheringMergesTheLogIntoTheSortedBlock) {
  base::Random random(base::seed_from_environment(22));
  for_many_leaves(random, [](const LeafModel& model) {
    std::vector<Record> records;
    gather_newest(model.view(), records);
    Items gathered;
    for (const Record& record : records) {
      ASSERT_TRUE(gathered.empty() || gathered.rbegin()->first < record.key_view());
      gathered.emplace(record.key_view(), std::string_view(record.value, record.value_bytes));
    }
    ASSERT_EQ(gathered, model.newest());
    // Records that still stand encoded in the old leaf build the same bytes as fresh ones.
    if (placed_bytes(records, model.geometry()) >
        leaf_room(model.geometry(), model.low(), model.high())) {
      return;
    }
    NodeBuffer again(model.geometry());
    NodeBuffer fresh(model.geometry());
    NodeFrame frame;
    frame.low = model.low();
    frame.high = model.high();
    build_leaf(again.data(), model.geometry(), records, frame);
    std::vector<Record> anew;
    for (const auto& [key, value] : gathered) anew.push_back(make_record(key, value, false));
    build_leaf(fresh.data(), model.geometry(), anew, frame);
    ASSERT_EQ(std::memcmp(again.data(), fresh.data(), model.geometry().node_bytes), 0);
  });
}

TEST(LeafBuilder, OrderHintsSortAnyPartOfTheLog) {
  base::Random random(base::seed_from_environment(23));
  for_many_leaves(random, [](const LeafModel& model) {
    const NodeView leaf = model.view();
    const std::uint32_t entries = leaf.log_entries(leaf.lock_word());
    std::uint8_t order[wire::kLogSlotsMax];
    for (std::uint32_t n = 0; n <= entries; ++n) {
      sort_log(leaf, n, order);
      for (std::uint32_t i = 1; i < n; ++i) {
        const int compared = compare_keys(leaf.log_item(order[i - 1], kNewest).key,
                                          leaf.log_item(order[i], kNewest).key);
        ASSERT_LE(compared, 0);
        ASSERT_TRUE(compared != 0 || order[i - 1] > order[i]) << "newer entries come first";
      }
    }
  });
}

TEST(LeafBuilder, AFullLeafKeepsItsPartsApart) {
  base::Random random(base::seed_from_environment(24));
  for (const MapOptions& options : all_geometries()) {
    for (const char* prefix : {"", "p", "sharedprefix"}) {
      LeafModel model(options, prefix);
      model.build(random, 100);
      const NodeView leaf = model.view();
      EXPECT_EQ(sorted_items(leaf), model.sorted());
      EXPECT_LE(leaf.sorted_end(), leaf.fence_begin());
      EXPECT_GE(leaf.log_begin(), leaf.sorted_end());
      EXPECT_TRUE(leaf.log_end() <= leaf.fence_begin() || leaf.log_end() == leaf.log_begin());
      EXPECT_EQ(leaf.low_fence(), model.low());
      EXPECT_EQ(leaf.high_fence(), model.high());
    }
  }
}

TEST(LeafBuilder, RecordsKnowWhatTheyWillTake) {
  const std::string text(600, 'x');
  const std::string_view all = text;
  EXPECT_EQ(make_record(all.substr(0, 127), all.substr(0, 127), false).encoded_bytes, 2 + 254);
  EXPECT_EQ(make_record(all.substr(0, 128), all.substr(0, 127), false).encoded_bytes, 3 + 255);
  EXPECT_EQ(make_record(all.substr(0, 128), all.substr(0, 128), false).encoded_bytes, 4 + 256);
  EXPECT_EQ(make_record("k", all.substr(0, 16), true).encoded_bytes, 3 + 1 + 16);
}

TEST(LeafBuilder, LongestItemsAndReferencesComeBack) {
  const Geometry g = Geometry::of({});
  const std::string key(g.key_bytes_max, 'k');
  const std::string value(g.inline_value_bytes_max, 'v');
  const std::string ref(sizeof(wire::ValueRef), 'r');
  const std::vector<Record> records{make_record("a", ref, true), make_record(key, value, false),
                                    make_record("l", "", false)};
  NodeBuffer buffer(g);
  build_leaf(buffer.data(), g, records, {});
  const SortedItem first = buffer.view().sorted_item(g.sorted_begin);
  EXPECT_TRUE(first.out_of_line);
  EXPECT_EQ(std::string_view(first.value, first.value_bytes), ref);
  const SortedItem second = buffer.view().sorted_item(first.end);
  EXPECT_FALSE(second.out_of_line);
  EXPECT_EQ(second.key, key);
  EXPECT_EQ(std::string_view(second.value, second.value_bytes), value);
  const SortedItem third = buffer.view().sorted_item(second.end);
  EXPECT_EQ(third.key, "l");
  EXPECT_EQ(third.value_bytes, 0u);
  EXPECT_EQ(third.end, buffer.view().sorted_end());
}

TEST(LeafBuilder, ANewLeafIsNoNodeUntilItGoesLive) {
  const Geometry g = Geometry::of({});
  NodeBuffer buffer(g);
  const std::uint32_t generation = 77;
  std::memcpy(buffer.data() + offsetof(wire::NodeHeader, generation), &generation, 4);
  build_leaf(buffer.data(), g, {}, {});
  EXPECT_EQ(buffer.view().superseded(), 0u);
  EXPECT_EQ(buffer.view().generation(), 77u) << "generations belong to the pool";
  go_live(buffer.data(), 5);
  EXPECT_EQ(buffer.view().superseded(), wire::kLive);
  EXPECT_EQ(buffer.view().created(), 5u);
}

// The bytes of a small leaf, drawn in docs/formats/node.md: a change of the format shows here.
TEST(LeafBuilder, GoldenBytesOfASmallLeaf) {
  const Geometry g = Geometry::of({.node_bytes = 512, .log_bytes = 64});
  NodeBuffer buffer(g);
  const std::vector<Record> records{make_record("apple", "red", false),
                                    make_record("apricot", "", false)};
  NodeFrame frame;
  frame.map_id = 3;
  frame.lid = 12291;
  frame.right = 12292;
  frame.high = "b";
  build_leaf(buffer.data(), g, records, frame);
  go_live(buffer.data(), 7);
  const auto* text = reinterpret_cast<const char*>(buffer.data());
  const auto bytes = [text](std::size_t at, std::size_t n) { return std::string(text + at, n); };
  using std::string_literals::operator""s;
  EXPECT_EQ(bytes(0, 24), "\x03\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s);
  EXPECT_EQ(bytes(24, 16),
            "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x62"s);               // low_key_prefix, high_key_prefix
  EXPECT_EQ(bytes(40, 16), "\0\0\0elppa\0\0\0\0\0\0\0\0"s);       // key_prefix_base, lock
  EXPECT_EQ(bytes(56, 8), "\x01\0\x17\x01\0\0\xD3\0"s);           // kind .. sorted_end
  EXPECT_EQ(bytes(64, 24), std::string(24, '\0'));                // no other node
  EXPECT_EQ(bytes(88, 12), "\x03\x30\0\0\0\0\0\0\x04\x30\0\0"s);  // LIDs
  EXPECT_EQ(bytes(100, 12), "\0\0\x01\0\xFF\x01\x02\0\xD8\0\x18\x01"s);  // fences, items, log
  EXPECT_EQ(bytes(112, 16), std::string(16, '\0'));
  EXPECT_EQ(bytes(128, 4), std::string(4, '\xFF'));  // 2 log slots
  EXPECT_EQ(bytes(132, 2), "\0\0"s);                 // head of chunk 0
  EXPECT_EQ(bytes(g.starts_begin, 2), "\0\xFF"s);
  EXPECT_EQ(bytes(g.places_begin, 4), std::string(4, '\xFF'));  // of log entries
  EXPECT_EQ(bytes(192, 19),
            "\x05\x03"
            "applered"
            "\x07\0"
            "apricot"s);
  EXPECT_EQ(bytes(216, 64), std::string(64, '\xFF'));  // the log
  EXPECT_EQ(bytes(511, 1), "b");
}

}  // namespace
}  // namespace espalier::tree
