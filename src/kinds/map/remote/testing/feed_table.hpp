// SPDX-License-Identifier: Apache-2.0
// For tests: a page table with some LIDs, its feed, and readers of the feed.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "kinds/map/remote/testing/feed_reader.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/region.hpp"

namespace espalier::place {

class FeedTable {
 public:
  explicit FeedTable(std::uint32_t lids)
      : region_(
            *memory::Region::reserve({.bytes_max = std::uint64_t{64} << 20, .huge_pages = false})),
        pool_(region_) {
    EXPECT_TRUE(table_.create(region_, pool_, kMap));
    EXPECT_TRUE(table_.reserve(lids));
    for (std::uint32_t i = 0; i < lids; ++i) lids_.push_back(table_.allocate());
    view_.region_bytes = region_.bytes();
    view_.id = kMap;
  }
  ~FeedTable() { table_.destroy(); }
  FeedTable(const FeedTable&) = delete;
  FeedTable& operator=(const FeedTable&) = delete;

  /// A reader of the feed, which it turns on if necessary.
  FeedReader follow() {
    const auto place = table_.feed().add_follower();
    EXPECT_TRUE(place);
    return {table_, region_.at(0), *FeedCursor::create(*place, view_), lids_};
  }
  /// Has node `which` move, to a place that no node had before.
  void move(std::size_t which, std::uint64_t version) {
    table_.set(lids_[which], place_of(which, version), version);
  }
  [[nodiscard]] static wire::Ref place_of(std::size_t which, std::uint64_t version) {
    return {version << 36 | (which + 1)};
  }
  /// Whether the reader knows the place of each node.
  [[nodiscard]] bool knows_all(const FeedReader& reader) const {
    for (const wire::Lid lid : lids_) {
      if (reader.place(lid) != table_.get(lid)) return false;
    }
    return true;
  }

  [[nodiscard]] tree::PageTable& table() { return table_; }
  [[nodiscard]] const tree::MapView& view() const { return view_; }
  [[nodiscard]] memory::Region& region() { return region_; }
  [[nodiscard]] wire::Lid lid(std::size_t which) const { return lids_[which]; }

 private:
  static constexpr std::uint32_t kMap = 7;
  memory::Region region_;
  memory::BufferPool pool_;
  tree::PageTable table_;
  tree::MapView view_;
  std::vector<wire::Lid> lids_;
};

}  // namespace espalier::place
