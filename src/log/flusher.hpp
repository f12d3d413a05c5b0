// SPDX-License-Identifier: Apache-2.0
// Group commit: each of a few threads writes what waits. Commits that come apart are written each
// by itself, beside each other; where several have come together, what comes gathers until no write
// is under way (WriteOrder::gathers). Another thread fills the next segment ahead.
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
  /// As many writes are under way as the writer takes.
  /// Errors: system, where a thread cannot start, out_of_memory; then the others do not run either.
  [[nodiscard]] static LogResult<std::unique_ptr<Flusher>> start(
      LogWriter& writer,
      const StartThread& start_thread = [](auto body) { return std::thread(std::move(body)); });
  /// Waits until what was appended is flushed.
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
  std::deque<PendingWrite> writes_;  // of each thread that writes, its own
  std::vector<std::thread> writing_;
};

}  // namespace espalier::log
