// SPDX-License-Identifier: Apache-2.0
// Makes checkpoints of a node's store while it serves (docs/design/checkpoints.md): one at a time,
// by a thread of its own, whenever the log has grown by so much since the last one began, or is at
// its bound: what writes wait for then is a checkpoint, and no growth of the log brings the next.
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

/// Since the node was started, and of the last one that was finished.
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
    /// One begins after so many bytes of the log; of what was there when it was opened, too.
    std::uint64_t log_bytes = 0;
    std::uint64_t there_bytes = 0;
    /// One that fails is tried again after so many, or where the log is at its bound; not before
    /// so much time, which doubles with each that fails, up to the most.
    std::uint64_t again_bytes = 0;
    std::chrono::nanoseconds again_after = std::chrono::seconds(1);
    std::chrono::nanoseconds again_after_max = std::chrono::minutes(1);
    /// It writes no more in a second, so that the log has the disk, too.
    std::uint64_t bytes_per_s = std::uint64_t{128} << 20;
    /// Is told, by the thread, why one was not finished.
    std::function<void(const std::string&)> failed{};
  };

  /// What the terms name outlives it. Errors: std::system_error.
  explicit CheckpointThread(Terms terms);
  CheckpointThread(const CheckpointThread&) = delete;
  CheckpointThread& operator=(const CheckpointThread&) = delete;
  /// One that is being made is given up. Requires: the store is there.
  ~CheckpointThread();

  /// Has the next one begin at once, or right after the one that is being made.
  void request();
  [[nodiscard]] const CheckpointCounts& counts() const { return counts_; }

 private:
  void run();
  [[nodiscard]] bool is_due() const;
  void make_one();
  void finish(const offload::CheckpointRun& made, std::uint64_t began_ns);
  void fail(const log::LogError& error);
  /// Returns whether to go on.
  bool pause(std::chrono::nanoseconds time);

  const Terms terms_;
  CheckpointCounts counts_;
  // The thread's:
  std::uint64_t due_bytes_;  // of what the log writes
  std::uint64_t due_ns_ = 0;
  std::chrono::nanoseconds again_after_;
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stopped_ = false;                 // guarded by mutex_
  std::atomic<bool> requested_ = false;  // set with mutex_
  std::thread thread_;
};

/// Of a store and its folder, as its settings say. `segment_bytes`: of the folder's log. All of
/// them outlive the thread.
[[nodiscard]] CheckpointThread::Terms checkpoint_terms(
    DataFolder& folder, offload::Services& services, std::span<const offload::Kind> own_kinds,
    const Config::Data& settings, std::uint64_t segment_bytes,
    std::function<void(const std::string&)> failed);

}  // namespace espalier::node
