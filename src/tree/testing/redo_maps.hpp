// SPDX-License-Identifier: Apache-2.0
// For tests: a store whose maps are recorded, and one that the records are applied to; and what
// must hold of when a record is handed over, as checks for good maps and broken ones.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/testing/recording_sink.hpp"
#include "tree/redo_record.hpp"
#include "tree/testing/map_objects.hpp"
#include "tree/write/apply_redo.hpp"

namespace espalier::tree {

/// The writes of a record. Requires: it is one.
inline std::vector<RedoWrite> writes_of(const MapRedo& redo) {
  std::vector<RedoWrite> all;
  wire::PayloadReader reader(redo.rest);
  for (std::uint32_t i = 0; i < redo.writes; ++i) all.push_back(read_write(reader).value());
  return all;
}

/// The records of a sink that are writes and changes of structure.
inline std::vector<MapRedo> map_records(const catalog::RecordingSink& sink) {
  std::vector<MapRedo> all;
  for (const std::string_view record : sink.records()) {
    if (const auto redo = read_map_redo(record)) all.push_back(*redo);
  }
  return all;
}

/// The versions of what was written to each key, in the order of the records.
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

/// Whether the records of each key come in the order of their versions.
inline bool versions_ascend(const catalog::RecordingSink& sink) {
  for (const auto& [key, versions] : versions_by_key(sink)) {
    for (std::size_t i = 1; i < versions.size(); ++i) {
      if (versions[i - 1] >= versions[i]) return false;
    }
  }
  return true;
}

/// Another thread writes the same key at the very moment at which a record is handed over: it must
/// find the leaf locked, for its own record would come first.
inline bool records_come_under_the_lock() {
  catalog::RecordingSink sink;
  TreeFixture tree;
  ThreadContext other(tree.store(), std::move(*tree.store().epochs.join()), 1);
  tree.map().record_to(&sink);
  bool first = true;
  sink.when_handed_over = [&](std::string_view) {
    if (!std::exchange(first, false)) return;
    SearchKey key;
    key.assign("key");
    const WriteIntent intent{Op::put, &key, "theirs", false, {}};
    other.slot.enter();
    static_cast<void>(write_to_leaf(other, tree.map(), tree.bytes(tree.map().root), intent));
    other.slot.exit();
  };
  return tree.put("key", "mine").ok && versions_ascend(sink);
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

class RedoMaps : public ::testing::Test {
 protected:
  using Core = std::shared_ptr<MapCore>;
  RedoMaps() { store_.catalog.record_to(&sink_); }

  Core create(const MapOptions& options) { return create_map(store_, "map", options).value(); }

  /// Applies a record to the other store, whatever it is of.
  Result<void> apply(std::string_view record) {
    const auto head = catalog::read_redo_head(record);
    if (!head) return std::unexpected(head.error());
    if (head->type == static_cast<std::uint8_t>(catalog::RedoType::created)) {
      const auto restored = restore_map(other_, catalog::read_created(record).value());
      return restored ? Result<void>() : std::unexpected(restored.error());
    }
    if (head->type == static_cast<std::uint8_t>(catalog::RedoType::dropped)) {
      static_cast<void>(other_.catalog.drop_again(head->object));
      return {};
    }
    const Core map = other_.catalog.find<MapCore>(head->object);
    return map == nullptr ? Result<void>() : apply_redo(other_context_, *map, record);
  }
  /// Applies those from one on, up to another.
  void apply_some(std::size_t from, std::size_t to) {
    const auto records = sink_.records();
    for (std::size_t i = from; i < to; ++i) ASSERT_TRUE(apply(records[i])) << "record " << i;
  }
  /// What the records made of a map. Requires: they made it.
  Core other(const MapCore& map) { return other_.catalog.find<MapCore>(map.id); }

  catalog::RecordingSink sink_;
  StoreCore store_ = make_store();
  StoreCore other_ = make_store();
  ThreadContext context_{store_, std::move(*store_.epochs.join()), 0};
  ThreadContext other_context_{other_, std::move(*other_.epochs.join()), 0};
};

}  // namespace espalier::tree
