// SPDX-License-Identifier: Apache-2.0
// Writes of several keys whose leaves were found at the same time, under one version.
//
//   try the locks of all leaves | look, and write the entries | take a version | publish | unlock
//
// A version costs lines that all writers of a map share, whatever their keys: the newest one that
// was taken, the newest that is released. Here several writes pay for them once. They have nothing
// else to do with each other: each is decided by itself, and readers happen to see all at once.
//
// No lock is waited for, so that no order of locks is needed. What cannot be written so leaves the
// group, as it came: where a leaf is locked, is not the key's any more, or has no room in its log,
// and where a key comes twice, for each version of a key is that of one write.
//
// Thread: as write_to_leaf.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kinds/map/write/leaf_write.hpp"

namespace espalier::tree {

/// The writes of one group. Between the first add() and publish() nothing else may be done.
class GroupWriter {
 public:
  /// Most writes of a group.
  static constexpr std::size_t kWritesMax = 16;

  /// Requires: the map has no sink, for each record has a version of its own; the worker's epoch is
  /// exposed since before the leaves were found.
  GroupWriter(ThreadContext& context, MapCore& map) noexcept;
  GroupWriter(const GroupWriter&) = delete;
  GroupWriter& operator=(const GroupWriter&) = delete;

  /// Locks the leaf in which a walk has found the key, and writes there what will be the write,
  /// which has no condition, with the version of publish(). `known`: see newest_state. The outcome
  /// is `done`, or `busy`: it has left the group, and nothing was done.
  /// Cost: as of write_to_leaf, but for versions. Requires: no more than kWritesMax.
  [[nodiscard]] WriteOutcome add(const WriteIntent& intent, std::byte* leaf,
                                 const LeafProbe* known) noexcept;
  /// Takes the version of all that was applied, makes it visible, and unlocks the leaves. Returns
  /// the version; 0 if nothing was applied. Call it once, behind all others.
  std::uint64_t publish() noexcept;

 private:
  /// A leaf of the group, and the fill of its log with what was added.
  struct GroupLeaf {
    bool locked;
    bool open;  // to more writes: what comes behind one that left must not overtake it
    std::uint32_t entries;
    std::uint32_t units;
  };
  /// What was added, and what it replaces.
  struct Entry {
    std::byte* at;
    std::byte* leaf;
    std::string_view key;
    const char* replaced_value;  // a ValueRef; null: there is none
    bool existed;
    bool erases;
  };

  GroupLeaf* lock(std::byte* at) noexcept;
  [[nodiscard]] bool has_key(const std::byte* leaf, std::string_view key) const;
  void retire_replaced(const Entry& entry, std::uint64_t version) noexcept;

  ThreadContext& context_;
  MapCore& map_;
  bool ready_;
  std::uint64_t early_;  // taken before the locks (Bug::version_before_lock), or 0
  std::size_t leaf_count_ = 0;
  std::size_t count_ = 0;
  std::byte* at_[kWritesMax];  // of the leaves
  GroupLeaf leaves_[kWritesMax];
  Entry entries_[kWritesMax];
};

}  // namespace espalier::tree
