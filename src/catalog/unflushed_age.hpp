// SPDX-License-Identifier: Apache-2.0
// How old the oldest record is that is not durable yet. Objects whose writes are answered before
// that take no more of them once it is too old: so a crash loses no more than was written within
// that time, also where the disk stands still (docs/design/durability.md).
//
// Each write asks before it begins, so the age is measured by those who write: a sample says how
// many records there were at a look, all of which were handed over after the look before it. An age
// is never told too low, and by a sixteenth of the limit too high at most, but after a pause.
//
// Thread: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "catalog/object.hpp"
#include "catalog/redo_sink.hpp"

namespace espalier::catalog {

class UnflushedAge {
 public:
  using Clock = std::uint64_t (*)() noexcept;

  /// The sink outlives it. `now_ns`: for tests. Requires: a limit of kLooks nanoseconds at least.
  UnflushedAge(RedoSink& sink, std::uint64_t limit_ns);
  UnflushedAge(RedoSink& sink, std::uint64_t limit_ns, Clock now_ns);
  UnflushedAge(const UnflushedAge&) = delete;
  UnflushedAge& operator=(const UnflushedAge&) = delete;

  /// Whether it is at the limit, so that no write may begin. Where nothing will be durable any
  /// more it is not: then writes are refused by the sink. Cost: about 5 ns; sixteen times within
  /// the limit two locks.
  [[nodiscard]] bool is_over() noexcept {
    const std::uint64_t now = now_ns_();
    return now >= look_at_ns_.load(std::memory_order_relaxed) && look(now);
  }

 private:
  static constexpr std::size_t kLooks = 16;  // within the limit
  struct Sample {
    std::uint64_t sequence;  // there were so many records
    std::uint64_t since_ns;  // that the oldest of them was handed over, at the earliest
  };

  bool look(std::uint64_t now) noexcept;
  void add_sample(std::uint64_t durable) noexcept;

  RedoSink& sink_;
  const std::uint64_t limit_ns_;
  const Clock now_ns_;
  std::atomic<std::uint64_t> look_at_ns_ = 0;  // before that the answer is no
  std::mutex mutex_;                           // guards what follows
  std::array<Sample, kLooks> samples_{};       // of records that are not durable, by their order
  std::size_t count_ = 0;
  std::uint64_t looked_ns_ = 0;
};

/// Whether a write of this object must wait, for what is not durable is too old.
[[nodiscard]] inline bool must_wait_for_disk(const Object& object) noexcept {
  return object.is_async() && object.redo()->promise().age->is_over();
}
/// Waits until none must. Cost: a load where the object is not async. Requires: the caller holds
/// nothing that those who raise the mark wait for.
void wait_until_younger(const Object& object);
inline void wait_for_disk(const Object& object) {
  if (object.is_async()) wait_until_younger(object);
}

}  // namespace espalier::catalog
