// SPDX-License-Identifier: Apache-2.0
// For tests: a store whose maps are logged, and a store that the records are applied to; and the
// rules of when a record is handed over, as checks for correct and broken maps.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/apply_record.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "kinds/map/redo_record.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "kinds/map/write/apply_redo.hpp"
#include "kinds/map/write/batch.hpp"
#include "kinds/map/write/change.hpp"
#include "memory/region.hpp"
#include "store/store_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {

/// The writes of a record. Requires: it is a valid record.
inline std::vector<RedoWrite> writes_of(const MapRedo& redo) {
  std::vector<RedoWrite> all;
  wire::PayloadReader reader(redo.rest);
  for (std::uint32_t i = 0; i < redo.writes; ++i) all.push_back(read_write(reader).value());
  return all;
}

/// A sink's records of writes and of changes of structure.
inline std::vector<MapRedo> map_records(const catalog::RecordingSink& sink) {
  std::vector<MapRedo> all;
  for (const std::string_view record : sink.records()) {
    if (const auto redo = read_map_redo(record)) all.push_back(*redo);
  }
  return all;
}

/// The versions written to each key, in the order of the records.
inline std::map<std::string, std::vector<std::uint64_t>> versions_by_key(
    const catalog::RecordingSink& sink) {
  std::map<std::string, std::vector<std::uint64_t>> versions;
  for (const MapRedo& redo : map_records(sink)) {
    for (const RedoWrite& write : writes_of(redo)) {
      versions[std::string(write.key)].push_back(redo.version);
    }
  }
  return versions;
}

/// Whether the records of each key are in the order of their versions.
inline bool versions_ascend(const catalog::RecordingSink& sink) {
  for (const auto& [key, versions] : versions_by_key(sink)) {
    for (std::size_t i = 1; i < versions.size(); ++i) {
      if (versions[i - 1] >= versions[i]) return false;
    }
  }
  return true;
}

/// The number of locked leaves below a node.
inline std::size_t locked_leaves(const MapCore& map, wire::Lid lid) {
  const NodeView node = map.node(lid);
  if (node.leaf()) return node.lock_word().locked() ? 1 : 0;
  std::size_t locked = 0;
  for (std::uint32_t i = 0; i < node.children(); ++i) locked += locked_leaves(map, node.child(i));
  return locked;
}

/// Whether the record's leaves are locked: each leaf that now covers one of its keys; for a merge,
/// at least two leaves.
inline bool is_under_the_lock(const MapCore& map, const MapRedo& redo) {
  if (redo.type == RedoType::restructured) return locked_leaves(map, map.root) >= 2;
  for (const RedoWrite& write : writes_of(redo)) {
    SearchKey key;
    key.assign(write.key);
    Path path;
    if (!NodeView(find_leaf(map, key, path), map.geometry).lock_word().locked()) return false;
  }
  return true;
}

/// The ways in which a write takes a version.
enum class RedoWay : std::uint8_t { append, log_merge, split, merge, thin_merge, batch };
inline constexpr RedoWay kRedoWays[] = {RedoWay::append, RedoWay::log_merge,  RedoWay::split,
                                        RedoWay::merge,  RedoWay::thin_merge, RedoWay::batch};

/// How often a write went that way.
inline std::uint64_t times(TreeFixture& tree, RedoWay way) {
  switch (way) {
    case RedoWay::append:
    case RedoWay::batch: return tree.map().clock.taken();
    case RedoWay::log_merge: return tree.map().log_merges.sum();
    case RedoWay::split: return tree.map().splits.load();
    case RedoWay::merge:
    case RedoWay::thin_merge: return tree.map().merges.load();
  }
  return 0;
}

/// A write that soon goes that way. Requires: fill() has run.
inline void write_that_way(TreeFixture& tree, RedoWay way, std::uint64_t i) {
  switch (way) {
    case RedoWay::append:
    case RedoWay::log_merge: tree.put(TreeFixture::numbered(100), "100"); break;  // unchanged
    case RedoWay::split: tree.put(TreeFixture::numbered(i, "new"), "value"); break;
    case RedoWay::merge: tree.erase(TreeFixture::numbered(i)); break;
    case RedoWay::batch: tree.write_all({{"a", "1"}, {"b", std::nullopt}, {"z", "2"}}); break;
    case RedoWay::thin_merge: {
      std::vector<std::string> keys;
      std::vector<BatchWrite> erases;
      for (std::uint64_t j = 0; j < 19; ++j) keys.push_back(TreeFixture::numbered(19 * i + j));
      for (const std::string& key : keys) erases.push_back({key, {}, true});
      EXPECT_TRUE(apply_batch(tree.context(), tree.map(), erases, {}));
    }
  }
}

/// Whether the record of the first write of this way is handed over under the lock.
inline bool records_come_under_the_lock(RedoWay way) {
  catalog::RecordingSink sink;
  TreeFixture tree({.node_bytes = 512});
  tree.fill(200);
  tree.map().record_to(&sink);
  bool locked = true;
  sink.when_handed_over = [&](std::string_view record) {
    const MapRedo redo = read_map_redo(record).value();
    const bool other = way == RedoWay::thin_merge && redo.type != RedoType::restructured;
    locked = other || is_under_the_lock(tree.map(), redo);
  };
  const std::uint64_t before = times(tree, way);
  for (std::uint64_t i = 0; i < 200 && times(tree, way) == before; ++i) {
    write_that_way(tree, way, i);
  }
  return locked && times(tree, way) != before;
}

/// Whether no version is released before its record is handed over.
inline bool records_come_before_their_release() {
  catalog::RecordingSink sink;
  TreeFixture tree;
  tree.map().record_to(&sink);
  bool good = true;
  sink.when_handed_over = [&](std::string_view record) {
    good = good && tree.map().clock.released() < read_map_redo(record)->version;
  };
  tree.fill(200);  // merges logs, and splits
  tree.write_all({{"a", "1"}, {"b", std::nullopt}, {"key00007", std::nullopt}});
  return good && sink.count() == tree.map().clock.taken();
}

/// Whether a reader sees nothing of a write before its record is durable, and all of it afterwards;
/// for writes to logs of leaves and for splits.
inline bool readers_see_what_is_durable() {
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  TreeFixture tree({.node_bytes = 512});
  tree.fill(100);
  tree.map().record_to(&sink);
  const auto has = [&](std::string_view key) {
    return tree.run(TreeFixture::request(Op::get, key)).found;
  };
  tree.write_all({{"a", "1"}, {"key00007", std::nullopt}});
  std::map<std::string, std::optional<std::string>> many;
  for (std::uint64_t i = 0; i < 40; ++i) many[TreeFixture::numbered(i, "new")] = "value";
  tree.write_all(many);
  bool good = !has("a") && has("key00007") && !has(TreeFixture::numbered(3, "new"));
  sink.make_durable(1);
  good = good && has("a") && !has("key00007") && !has(TreeFixture::numbered(3, "new"));
  sink.make_durable();
  return good && has(TreeFixture::numbered(3, "new")) && has(TreeFixture::numbered(39, "new"));
}

class RedoMaps : public ::testing::Test {
 protected:
  using Core = std::shared_ptr<MapCore>;
  explicit RedoMaps(std::uint64_t bytes_max = std::uint64_t{256} << 20)
      : RedoMaps(bytes_max, bytes_max) {}
  RedoMaps(std::uint64_t bytes_max, std::uint64_t other_bytes_max)
      : store_(make_store(bytes_max)), other_(make_store(other_bytes_max)) {
    store_.catalog.record_to(&sink_);
  }

  Core create(const MapOptions& options) { return create_map(store_, "map", options).value(); }

  /// Applies a record of any object to the other store.
  Result<void> apply(std::string_view record) {
    return catalog::apply_record(
        other_.catalog, record,
        [this](const catalog::CreatedObject& created) { return restore_map(other_, created); },
        [this](const catalog::RedoHead& head, std::string_view own) {
          return catalog::apply_to<MapCore>(other_.catalog, head.object, [&](MapCore& map) {
            return apply_redo(other_context_, map, own);
          });
        });
  }
  /// Applies the records [from, to).
  void apply_some(std::size_t from, std::size_t to) {
    const auto records = sink_.records();
    for (std::size_t i = from; i < to; ++i) ASSERT_TRUE(apply(records[i])) << "record " << i;
  }
  /// The map that the records made. Requires: they made it.
  Core other(const MapCore& map) { return other_.catalog.find<MapCore>(map.id); }

  catalog::RecordingSink sink_;
  StoreCore store_;
  StoreCore other_;
  ThreadContext context_{store_, std::move(*store_.epochs.join()), 0};
  ThreadContext other_context_{other_, std::move(*other_.epochs.join()), 0};
};

}  // namespace espalier::tree
