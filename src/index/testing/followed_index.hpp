// SPDX-License-Identifier: Apache-2.0
// For tests: switch tables that follow a map by its mapping feed.
//
// Thread: one.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "dataplane/key_number.hpp"
#include "fabric/shared_copy.hpp"
#include "index/index_follower.hpp"
#include "index/testing/leaf_of.hpp"
#include "kinds/map/testing/map_objects.hpp"

namespace espalier::place {

/// A map, a switch's copy of its tables, and the follower that updates the copy from the map's
/// feed.
class FollowedIndex {
 public:
  static constexpr std::uint64_t kBase = std::uint64_t{1} << 50;
  static constexpr std::uint64_t kKeys = 3000;
  static std::string key_of(std::uint64_t i) { return "user" + std::to_string(100'000 + i * 7); }

  FollowedIndex() {
    for (std::uint64_t i = 0; i < kKeys; ++i) user.put(key_of(i), "value");
    // Full leaves split once they are written again.
    for (std::uint64_t i = 0; i < 4 * kKeys; ++i) user.put(key_of(i * 7 % kKeys), "value");
    cursor_.emplace(*FeedCursor::create(*map->table.feed().add_follower(), *map));
    EXPECT_TRUE(take_feed()) << "the tree was not read yet, and nothing was told";
    EXPECT_TRUE(follower.read(*map, region));
    EXPECT_FALSE(follower.changes()) << "all is new";
    known = follower.tables();
  }
  /// False: the tree has another shape.
  bool take_feed() {
    bool same_shape = true;
    do {
      fabric::copy_from_shared(landing_.header.data(), map->at(cursor_->header_offset()),
                               landing_.header.size());
      fabric::copy_from_shared(landing_.entries.data(), map->at(cursor_->entries_offset()),
                               cursor_->entries_bytes());
      std::vector<MappingChange> changes;
      if (cursor_->take(landing_, changes) == FeedCursor::Came::behind) ++behind;
      for (const MappingChange& change : changes) {
        same_shape = follower.moved(change) && same_shape;
      }
    } while (cursor_->waiting() != 0);
    reshaped_ = reshaped_ || !same_shape;
    return same_shape;
  }
  /// The leaf of a key, found by the host.
  std::uint64_t leaf_of(const std::string& key) {
    return kBase + leaf_offset_of(*map, context, key);
  }
  /// Keys whose leaf the switch's tables do not have.
  std::uint64_t astray() {
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const std::uint64_t found =
          dataplane::find(known, dataplane::key_number("user", key_of(i))).address;
      count += found == leaf_of(key_of(i)) ? 0 : 1;
    }
    return count;
  }

  /// Writes some keys again. Returns whether that led to changed entries only, which the switch
  /// then has.
  bool move_some(base::Random& random, int writes) {
    for (int i = 0; i < writes; ++i) user.put(key_of(random.below(kKeys)), "value");
    if (!take_feed()) return false;
    const auto changes = follower.changes();
    if (!changes) return false;
    take(*changes);
    return true;
  }
  /// Brings the switch up to date; reads the tree if its shape has changed. False: the tree cannot
  /// be read.
  bool update() {
    if (reshaped_ && !follower.read(*map, region)) return false;
    reshaped_ = false;
    const auto changes = follower.changes();
    if (changes) {
      take(*changes);
    } else {
      ++generations;
      known = follower.tables();
    }
    return true;
  }

  tree::StoreCore store = tree::make_store();
  tree::ThreadContext context{store, *store.epochs.join(), 0};
  std::shared_ptr<tree::MapCore> map =
      *tree::create_map(store, "map", {.node_bytes = 512, .log_bytes = 64});
  tree::MapUser user{context, map};
  LocalRegion region{store.region.at(0)};
  IndexFollower follower{{1, 2}, "user", kBase, {.ranges = 200, .sets = 4, .nodes_per_set = 5000}};
  dataplane::IndexTables known;
  std::uint64_t behind = 0;       // times that the follower fell behind the feed
  std::uint64_t changed = 0;      // entries
  std::uint64_t generations = 0;  // times that all tables were installed

 private:
  void take(const std::vector<dataplane::EntryChange>& changes) {
    for (const dataplane::EntryChange& change : changes) {
      dataplane::set_address(known, change.place, change.address);
    }
    changed += changes.size();
  }

  bool reshaped_ = false;  // the tree must be read
  FeedCursor::Landing landing_;
  std::optional<FeedCursor> cursor_;
};

}  // namespace espalier::place
