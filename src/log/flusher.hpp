// SPDX-License-Identifier: Apache-2.0
// Group commit: a few threads write pending records. Commits that arrive separately are written
// concurrently, each by itself. When several have arrived together, further ones gather until no
// write is under way (WriteOrder::gathers). Another thread fills the next segment ahead.
//
// Thread: one makes and destroys it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "log/log_writer.hpp"

namespace espalier::log {

/// Starts a thread. Throws std::system_error where there can be none.
using StartThread = std::function<std::thread(std::function<void()>)>;

class Flusher {
 public:
  /// Runs as many writes concurrently as the writer permits.
  /// Errors: system (a thread cannot start; the others do not run either), out_of_memory.
  [[nodiscard]] static LogResult<std::unique_ptr<Flusher>> start(
      LogWriter& writer,
      const StartThread& start_thread = [](auto body) { return std::thread(std::move(body)); });
  /// Waits until all appended records are flushed.
  ~Flusher();
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;

 private:
  explicit Flusher(LogWriter& writer) : writer_(writer) {}
  void write_groups(PendingWrite& write);
  void fill_ahead();

  LogWriter& writer_;
  std::mutex mutex_;
  std::condition_variable flushed_;
  bool look_ = false;  // a segment may be half full
  bool stopped_ = false;
  std::thread filling_;
  std::deque<PendingWrite> writes_;  // one for each writing thread
  std::vector<std::thread> writing_;
};

}  // namespace espalier::log
