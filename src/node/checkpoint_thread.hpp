// SPDX-License-Identifier: Apache-2.0
// Makes checkpoints of a node's store while it serves (docs/design/checkpoints.md): one at a time,
// on a thread of its own. One begins when the log has grown by a set amount since the last, or is
// at its bound, where writes wait for a checkpoint and no growth would trigger it.
//
// Thread: any; one starts and destroys it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "engine/checkpoint_run.hpp"
#include "node/config.hpp"
#include "node/data_folder.hpp"

namespace espalier::node {

/// Since the node's start; `last_`: of the last finished one.
struct CheckpointCounts {
  std::atomic<std::uint64_t> finished = 0;
  std::atomic<std::uint64_t> failed = 0;
  std::atomic<std::uint64_t> last_records = 0;
  std::atomic<std::uint64_t> last_bytes = 0;
  std::atomic<std::uint64_t> last_ns = 0;
};

class CheckpointThread {
 public:
  struct Terms {
    offload::CheckpointRun::Terms of;
    /// One begins after so many bytes of log, including those found when it was opened.
    std::uint64_t log_bytes = 0;
    std::uint64_t there_bytes = 0;
    /// A failed one is retried after so many bytes, or if the log is at its bound; but not before
    /// this time, which doubles with each failure, up to the maximum.
    std::uint64_t again_bytes = 0;
    std::chrono::nanoseconds again_after = std::chrono::seconds(1);
    std::chrono::nanoseconds again_after_max = std::chrono::minutes(1);
    /// Limit on its write rate, so that the log gets its share of the disk.
    std::uint64_t bytes_per_s = std::uint64_t{128} << 20;
    /// Called by the thread with the reason of a failure.
    std::function<void(const std::string&)> failed{};
  };

  /// The objects that the terms refer to outlive it. Errors: std::system_error.
  explicit CheckpointThread(Terms terms);
  CheckpointThread(const CheckpointThread&) = delete;
  CheckpointThread& operator=(const CheckpointThread&) = delete;
  /// Abandons a running checkpoint. Requires: the store still exists.
  ~CheckpointThread();

  /// Begins the next one immediately, or right after the running one.
  void request();
  [[nodiscard]] const CheckpointCounts& counts() const { return counts_; }

 private:
  void run();
  [[nodiscard]] bool is_due() const;
  void make_one();
  void finish(const offload::CheckpointRun& made, std::uint64_t began_ns);
  void fail(const log::LogError& error);
  /// Returns whether to continue.
  bool pause(std::chrono::nanoseconds time);

  const Terms terms_;
  CheckpointCounts counts_;
  // Used by the thread:
  std::uint64_t due_bytes_;  // bytes written by the log
  std::uint64_t due_ns_ = 0;
  std::chrono::nanoseconds again_after_;
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stopped_ = false;                 // guarded by mutex_
  std::atomic<bool> requested_ = false;  // set with mutex_
  std::thread thread_;
};

/// The terms for a store and its folder, from its settings. `segment_bytes`: of the folder's log.
/// All of them outlive the thread.
[[nodiscard]] CheckpointThread::Terms checkpoint_terms(
    DataFolder& folder, offload::Services& services, std::span<const offload::Kind> own_kinds,
    const Config::Data& settings, std::uint64_t segment_bytes,
    std::function<void(const std::string&)> failed);

}  // namespace espalier::node
