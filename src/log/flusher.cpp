// SPDX-License-Identifier: Apache-2.0
#include "log/flusher.hpp"

namespace espalier::log {

Flusher::Flusher(LogWriter& writer)
    : writer_(writer), filling_([this] { fill_ahead(); }), flushing_([this] { flush_groups(); }) {}

Flusher::~Flusher() {
  writer_.queue().stop();
  flushing_.join();
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    flushed_.notify_all();
  }
  filling_.join();
}

void Flusher::flush_groups() {
  while (writer_.queue().wait()) {
    // What it fails with is told to those who wait, and again to whoever closes the log.
    static_cast<void>(writer_.flush());
    const std::scoped_lock lock(mutex_);
    look_ = true;
    flushed_.notify_all();
  }
}

void Flusher::fill_ahead() {
  std::unique_lock lock(mutex_);
  while (true) {
    flushed_.wait(lock, [this] { return look_ || stopped_; });
    if (stopped_) return;
    look_ = false;
    lock.unlock();
    // Where there is no space, the next segment's own turn will say so, if there still is none.
    static_cast<void>(writer_.prepare_spare());
    lock.lock();
  }
}

}  // namespace espalier::log
