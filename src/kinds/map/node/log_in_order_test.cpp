// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/node/log_in_order.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "kinds/map/testing/leaf_model.hpp"

namespace espalier::tree {
namespace {

using Found = std::map<std::string, std::uint64_t>;  // keys and their versions

// What the log has, read entry by entry in the order of writing.
Found newest_of_each(const NodeView& leaf, std::uint64_t read_version, std::uint32_t first,
                     std::uint32_t last) {
  Found found;
  for (std::uint32_t i = 0; i < leaf.log_entries(leaf.lock_word()); ++i) {
    const LogItem item = leaf.log_item(i, read_version);
    if (item.version == wire::kLive || item.place < first || item.place > last) continue;
    found[std::string(item.key)] = item.version;
  }
  return found;
}

TEST(LogInOrder, TellsTheNewestEntryOfEachKeyByKey) {
  base::Random random(base::seed_from_environment(25));
  std::size_t entries = 0;
  for_many_leaves(random, [&](const LeafModel& model) {
    const NodeView leaf = model.view();
    const std::uint32_t begin = model.geometry().sorted_begin;
    const std::uint32_t middle = begin + (leaf.sorted_end() - begin) / 2;
    for (std::uint64_t version = LeafModel::kCreated; version <= model.newest_version();
         version += 1 + random.below(6)) {
      for (const auto& [first, last] : {std::pair{begin, leaf.sorted_end()},
                                        std::pair{begin, middle}, std::pair{middle, middle}}) {
        LogInOrder log;
        log.begin(leaf, version, first, last);
        Found found;
        // From any end: a scan goes forward, or backward, and may begin in the middle of a place.
        const bool backward = random.below(2) == 0;
        for (std::uint32_t n = 0; n < log.count(); ++n) {
          const std::uint32_t i = backward ? log.count() - 1 - n : n;
          ASSERT_TRUE(log.place(i) >= first && log.place(i) <= last);
          const LogItem* item = log.at(i);
          if (item == nullptr) continue;
          ASSERT_EQ(item->place, log.place(i));
          if (!found.empty()) {
            const std::string& before = backward ? found.begin()->first : found.rbegin()->first;
            ASSERT_EQ(item->key < before, backward) << item->key << " after " << before;
          }
          found[std::string(item->key)] = item->version;
        }
        ASSERT_EQ(found, newest_of_each(leaf, version, first, last));
        entries += found.size();
      }
    }
  });
  EXPECT_GT(entries, 1000u);
}

TEST(LogInOrder, WhatIsNoEntryComesLastAtItsPlace) {
  LeafModel model({});
  model.build(LeafModel::Items{{"m", "1"}});
  for (const char* value : {"1", "2", "3"}) ASSERT_TRUE(model.append("b", value));
  ASSERT_TRUE(model.append("a", "1"));
  LogInOrder log;
  log.begin(model.view(), model.newest_version(), 0, model.view().sorted_end());
  ASSERT_EQ(log.count(), 4u);
  ASSERT_NE(log.at(0), nullptr);
  ASSERT_NE(log.at(1), nullptr);
  EXPECT_EQ(log.at(0)->key, "a");
  EXPECT_EQ(std::string_view(log.at(1)->value, log.at(1)->value_bytes), "3");
  EXPECT_EQ(log.at(2), nullptr);
  EXPECT_EQ(log.at(3), nullptr);
}

}  // namespace
}  // namespace espalier::tree
