// SPDX-License-Identifier: Apache-2.0
// A multi-key conditional write to one tree, as a sequence of steps.
//
//   enter    takes the structure lock and reserves memory
//   lock     locks the leaves of all keys, in ascending order
//   prepare  does all else that may fail
//   fill     writes bytes that no reader sees yet
//   publish  makes them visible under a version; unlocks the leaves
//   finish   retires replaced memory once the version is done
//
// A batch runs all steps by run(). A transaction over several objects (transaction_part.hpp) runs
// each step for all its objects in turn, so no version is taken before all locks are held.
//
// The destructor releases all locks; until publish() nothing has changed.
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
  /// Requires: writes ascend by key, each key once; the writes, the conditions and what they point
  /// to outlive this.
  BatchWriter(ThreadContext& context, MapCore& map, std::span<const WriteIntent> writes,
              std::span<const KeyCondition> conditions);
  ~BatchWriter() { unlock_all(); }
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;

  /// Runs all steps, with a record if the map has a sink. Errors: std::bad_alloc, with nothing
  /// changed.
  BatchOutcome run();

  // The single steps. Errors of the first three: out_of_memory or std::bad_alloc.

  /// Waits for the structure lock. Requires: the clock has admitted it.
  [[nodiscard]] Result<void> enter();
  /// Waits for writers of the leaves, including those of the conditions' keys.
  void lock();
  void prepare();
  /// The newest state of a key, under its leaf's lock. Requires: the key is that of a write or of a
  /// condition; between lock() and publish().
  [[nodiscard]] NewestState newest(const SearchKey& key) const;
  void fill() noexcept;
  void publish(std::uint64_t version) noexcept;
  BatchOutcome finish(std::uint64_t version) noexcept;

 private:
  /// The writes of a batch that go to one leaf.
  struct LeafShare {
    std::byte* leaf = nullptr;
    Path path;
    std::size_t first = 0;  // index of its first write in the batch
    std::size_t count = 0;
    std::uint32_t bytes = 0;  // upper bound of their size in the log and in the sorted block
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
  /// Takes a version, publishes under it, and returns it.
  std::uint64_t publish_recorded() noexcept;
  void unlock_written() noexcept;

  ThreadContext& context_;
  MapCore& map_;
  std::span<const WriteIntent> writes_;
  std::span<const KeyCondition> conditions_;
  WriteRedo redo_;
  std::unique_lock<std::mutex> structure_;  // destroyed last
  Change change_;
  const bool erases_;  // only erases: must work in a full store
  std::vector<LeafShare> shares_;
  std::vector<std::byte*> locked_;
  std::vector<std::byte*> rebuilt_;
  std::vector<Appended> appended_;
  std::vector<std::byte*> entries_;  // written, not published yet
  std::vector<NewestState> replaced_;
  std::vector<const SearchKey*> thin_;
  std::int64_t items_ = 0;
  bool existed_ = false;
};

}  // namespace espalier::tree
