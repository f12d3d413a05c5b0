// SPDX-License-Identifier: Apache-2.0
#include "log/flusher.hpp"

#include <new>
#include <system_error>

namespace espalier::log {

LogResult<std::unique_ptr<Flusher>> Flusher::start(LogWriter& writer,
                                                   const StartThread& start_thread) {
  std::unique_ptr<Flusher> flusher(new Flusher(writer));
  try {
    // Allocate now: a lack of memory later would fail the log.
    const WriterOptions& options = writer.options();
    flusher->writing_.reserve(options.writes_max);
    for (std::size_t i = 0; i < options.writes_max; ++i) {
      flusher->writes_.emplace_back(options.block_bytes_max, options.flush_bytes_max).take_memory();
    }
    flusher->filling_ = start_thread([&begun = *flusher] { begun.fill_ahead(); });
    for (PendingWrite& write : flusher->writes_) {
      flusher->writing_.push_back(
          start_thread([&begun = *flusher, &write] { begun.write_groups(write); }));
    }
  } catch (const std::bad_alloc&) {
    return log_fail({Code::out_of_memory}, LogFault::system, ".", 0, writer.durable() + 1);
  } catch (const std::system_error& refused) {
    const auto number = static_cast<std::uint32_t>(refused.code().value());
    return log_fail({Code::system, 0, number}, LogFault::system, ".", 0, writer.durable() + 1);
  }
  return flusher;
}

Flusher::~Flusher() {
  writer_.queue().stop();
  for (std::thread& one : writing_) one.join();
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    flushed_.notify_all();
  }
  if (filling_.joinable()) filling_.join();
}

void Flusher::write_groups(PendingWrite& write) {
  while (writer_.queue().wait()) {
    switch (writer_.begin(write)) {
      case WriteBegun::nothing: continue;
      case WriteBegun::later: writer_.await_ended(); continue;
      case WriteBegun::begun: break;
    }
    // Its error reaches the waiters, and the caller that closes the log.
    writer_.carry_out(write);
    writer_.end(write);
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
