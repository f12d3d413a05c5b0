// SPDX-License-Identifier: Apache-2.0
// A write of many keys on its way through one tree, on conditions.
//
//   enter    the structure lock, and memory
//   lock     the leaves of all keys, in ascending order
//   prepare  all else that may fail
//   fill     writes what nobody sees yet
//   publish  under a version; its leaves are unlocked
//   finish   once the version is done
//
// A batch does all of it by run(). A transaction over several objects (transaction_part.hpp) takes
// the steps one by one, for all its objects: so no version is taken before all locks are held.
//
// Whatever happens, it lets go of its locks when it goes, and until publish() nothing has changed.
//
// Thread: that of the worker. Requires: the worker's epoch is exposed while it lives.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "kinds/map/write/change.hpp"
#include "kinds/map/write/structure.hpp"
#include "kinds/map/write/write_redo.hpp"

namespace espalier::tree {

class BatchWriter {
 public:
  /// Requires: writes ascend by key, each key once; what they and the conditions point to outlives
  /// it.
  BatchWriter(ThreadContext& context, MapCore& map, std::span<const WriteIntent> writes,
              std::span<const KeyCondition> conditions);
  ~BatchWriter() { unlock_all(); }
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;

  /// All of it, with a record where the map has a sink. Errors: std::bad_alloc, and then nothing
  /// has changed.
  BatchOutcome run();

  // Step by step. Errors, of the first three: out_of_memory or std::bad_alloc.

  /// Waits for the structure lock. Requires: the clock has admitted it.
  [[nodiscard]] Result<void> enter();
  /// Waits for writers of the leaves, of the conditions' keys too.
  void lock();
  void prepare();
  /// The newest state of a key, under its leaf's lock. Requires: it is that of a write or of a
  /// condition; lock() was called, and publish() was not.
  [[nodiscard]] NewestState newest(const SearchKey& key) const;
  void fill() noexcept;
  void publish(std::uint64_t version) noexcept;
  BatchOutcome finish(std::uint64_t version) noexcept;

 private:
  /// The writes of a batch that fall into one leaf.
  struct LeafShare {
    std::byte* leaf = nullptr;
    Path path;
    std::size_t first = 0;  // of the batch's writes
    std::size_t count = 0;
    std::uint32_t bytes = 0;  // of log, or of sorted block: an upper bound for both
    bool fits_log = false;
  };
  struct Appended {
    std::byte* leaf;
    std::uint32_t entries;
    std::uint32_t units;
  };

  void find_shares();
  [[nodiscard]] std::uint32_t nodes_needed() const;
  void unlock_all() noexcept;
  bool check(BatchOutcome& outcome) const;
  void look();
  void append(const LeafShare& share) noexcept;
  void rebuild(const LeafShare& share, std::vector<Splice>& splices);
  /// Takes the version, and publishes under it. Returns it.
  std::uint64_t publish_recorded() noexcept;
  void unlock_written() noexcept;

  ThreadContext& context_;
  MapCore& map_;
  std::span<const WriteIntent> writes_;
  std::span<const KeyCondition> conditions_;
  WriteRedo redo_;
  std::unique_lock<std::mutex> structure_;  // goes last
  Change change_;
  const bool erases_;  // and nothing else: works in a full store
  std::vector<LeafShare> shares_;
  std::vector<std::byte*> locked_;
  std::vector<std::byte*> rebuilt_;
  std::vector<Appended> appended_;
  std::vector<std::byte*> entries_;  // written, not published
  std::vector<NewestState> replaced_;
  std::vector<const SearchKey*> thin_;
  std::int64_t items_ = 0;
  bool existed_ = false;
};

}  // namespace espalier::tree
