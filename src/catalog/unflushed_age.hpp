// SPDX-License-Identifier: Apache-2.0
// Age of the oldest record that is not durable yet. Objects with asynchronous durability accept no
// more writes once it reaches a limit: so a crash loses no more than was written within that time,
// even if the disk stalls (docs/design/durability.md).
//
// Each write checks before it begins, so writers measure the age by sampling the log's length. All
// records counted by a sample and not by the one before were handed over after the sample before
// it. The measured age is never too low. It is too high by at most a sixteenth of the limit, except
// after a pause without writes.
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

  /// The sink must outlive it. `now_ns`: for tests. Requires: a limit of at least kLooks
  /// nanoseconds.
  UnflushedAge(RedoSink& sink, std::uint64_t limit_ns);
  UnflushedAge(RedoSink& sink, std::uint64_t limit_ns, Clock now_ns);
  UnflushedAge(const UnflushedAge&) = delete;
  UnflushedAge& operator=(const UnflushedAge&) = delete;

  /// Whether the age is at the limit, so that no write may begin. False once the log has failed:
  /// then the sink refuses writes. Cost: about 5 ns; sixteen times within the limit two locks.
  [[nodiscard]] bool is_over() noexcept {
    const std::uint64_t now = now_ns_();
    return now >= look_at_ns_.load(std::memory_order_relaxed) && look(now);
  }

 private:
  static constexpr std::size_t kLooks = 16;  // within the limit
  struct Sample {
    std::uint64_t sequence;  // how many records there were
    std::uint64_t since_ns;  // a lower bound on when the first of them was handed over
  };

  bool look(std::uint64_t now) noexcept;
  void add_sample(std::uint64_t durable) noexcept;

  RedoSink& sink_;
  const std::uint64_t limit_ns_;
  const Clock now_ns_;
  std::atomic<std::uint64_t> look_at_ns_ = 0;  // before that is_over() is false
  std::mutex mutex_;                           // guards what follows
  std::array<Sample, kLooks> samples_{};       // of records that are not durable, in order
  std::size_t count_ = 0;
  std::uint64_t looked_ns_ = 0;
};

/// Whether a write of this object must wait, since records that are not durable are too old.
[[nodiscard]] inline bool must_wait_for_disk(const Object& object) noexcept {
  return object.is_async() && object.redo()->promise().age->is_over();
}
/// Blocks until no write must wait. Cost: one load if the object is not async. Requires: the caller
/// holds nothing that the threads that raise the mark wait for.
void wait_until_younger(const Object& object);
inline void wait_for_disk(const Object& object) {
  if (object.is_async()) wait_until_younger(object);
}

}  // namespace espalier::catalog
