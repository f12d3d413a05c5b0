// SPDX-License-Identifier: Apache-2.0
// Group commit: one thread flushes, and while it does the next group gathers; another one fills the
// next segment ahead.
//
// Thread: one makes and destroys it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "log/log_writer.hpp"

namespace espalier::log {

class Flusher {
 public:
  explicit Flusher(LogWriter& writer);
  /// Waits until what was appended is flushed.
  ~Flusher();
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;

 private:
  void flush_groups();
  void fill_ahead();

  LogWriter& writer_;
  std::mutex mutex_;
  std::condition_variable flushed_;
  bool look_ = false;  // a segment may be half full
  bool stopped_ = false;
  std::thread filling_;
  std::thread flushing_;
};

}  // namespace espalier::log
