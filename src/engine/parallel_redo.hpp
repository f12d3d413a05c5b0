// SPDX-License-Identifier: Apache-2.0
// Applies the records of a store by several threads: the records of one object in order by one
// thread, records that create and drop objects while all others are idle
// (docs/design/durability.md).
//
//   apply() --+-- queue of thread 0 --> its RedoTarget     object % threads says which
//             +-- queue of thread 1 --> its RedoTarget
//             '-- created, dropped: once all queues are empty, by the caller itself
//
// Objects that share a clock belong to one thread: each of their records advances the clock.
//
// Records are copied into pieces, which are handed to a thread when full, so a thread is woken once
// for some hundred records and the queue is bounded. A record longer than four full pieces is not
// copied: its thread applies it in place while the caller waits.
//
// Thread: one thread makes, calls and destroys it; no other thread uses the store meanwhile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/redo_target.hpp"
#include "engine/registry.hpp"
#include "engine/services.hpp"
#include "espalier/error.hpp"

namespace espalier::memory {
class VersionClock;
}

namespace espalier::offload {

class ParallelRedo {
 public:
  static constexpr std::uint32_t kThreadsMax = 16;
  /// As many as there are cores for, for those who have no wish.
  [[nodiscard]] static std::uint32_t usual_threads();

  struct Terms {
    Services& services;
    std::span<const Kind> own;  ///< kinds beside those of the registry; they outlive it
    std::uint32_t threads = 1;  ///< that apply, 1 to kThreadsMax; the caller's reads meanwhile
    std::size_t piece_bytes = std::size_t{64} << 10;
  };
  /// Which record was refused, counted from 0 in the order of apply().
  struct Refused {
    std::uint64_t index = 0;
    Error error;
  };

  /// Errors: system (no thread is to be had); std::bad_alloc.
  static Result<std::unique_ptr<ParallelRedo>> start(const Terms& terms);
  ParallelRedo(const ParallelRedo&) = delete;
  ParallelRedo& operator=(const ParallelRedo&) = delete;
  /// Ends the threads; what was not applied is left out.
  ~ParallelRedo();

  /// As of RedoTarget. Requires: no record was taken yet.
  void begin_versions_above(std::uint64_t version) { alone_.begin_versions_above(version); }
  /// Takes the next record, and copies it, or has it applied if it is long. Waits where its thread
  /// is behind. Memory, of all records: for each thread, some 20 times Terms::piece_bytes.
  /// Errors: that of the first record that was refused, this one or one before (refused() says
  /// which), as of RedoTarget::apply(); from then on always the same.
  Result<void> apply(std::span<const std::byte> record);
  /// Waits until all are applied. Errors: likewise.
  Result<void> finish();
  /// That apply records, each those of its objects.
  [[nodiscard]] std::size_t threads() const { return queues_.size(); }
  /// Nothing: none that is known.
  [[nodiscard]] const std::optional<Refused>& refused() const { return refused_; }

 private:
  class Queue;

  explicit ParallelRedo(const Terms& terms);
  Result<void> apply_alone(std::span<const std::byte> record);
  Result<void> add(std::uint32_t object, std::span<const std::byte> record);
  [[nodiscard]] std::size_t queue_of(std::uint32_t object);
  void forget_queues();
  Result<void> refuse(const Refused& refused);

  RedoTarget alone_;
  std::vector<std::unique_ptr<Queue>> queues_;
  // Which queue has the records of an object, and those of a clock; as long as no object is made
  // or dropped.
  std::unordered_map<std::uint32_t, std::size_t> queue_by_object_;
  std::unordered_map<const memory::VersionClock*, std::size_t> queue_by_clock_;
  bool clocks_are_shared_ = false;
  std::atomic<bool> failed_ = false;  // one of the queues has
  std::optional<Refused> refused_;
  std::uint64_t next_ = 0;  // the index of the next record
};

}  // namespace espalier::offload
