// SPDX-License-Identifier: Apache-2.0
#include "log/record_queue.hpp"

#include <utility>

#include "base/assert.hpp"

namespace espalier::log {

std::uint64_t RecordQueue::append(std::span<std::byte> bytes) noexcept {
  QueuedRecord* const record = QueuedRecord::of(bytes);
  ESPALIER_ASSERT(record->bytes == bytes.size() && record->sequence == 0);
  const std::scoped_lock lock(mutex_);
  const std::uint64_t sequence = next_++;
  record->sequence = sequence;
  // If others are queued, a writer is on its way to take them all, or is held back.
  const bool is_first = appended_.empty();
  appended_.push(record);
  if (is_first && waiting_ != 0 && !held_) filled_.notify_one();
  return sequence;
}

RecordList RecordQueue::take() noexcept {
  const std::scoped_lock lock(mutex_);
  return std::exchange(appended_, RecordList());
}

void RecordQueue::put_back(RecordList& records) noexcept {
  if (records.empty()) return;
  const std::scoped_lock lock(mutex_);
  move_records(appended_, records);
  appended_ = std::exchange(records, RecordList());
  if (waiting_ != 0 && !held_) filled_.notify_one();
}

void RecordQueue::hold(bool held) noexcept {
  const std::scoped_lock lock(mutex_);
  held_ = held;
  if (waiting_ != 0 && !held_ && !appended_.empty()) filled_.notify_one();
}

bool RecordQueue::wait() {
  std::unique_lock lock(mutex_);
  ++waiting_;
  filled_.wait(lock, [this] { return (!appended_.empty() && !held_) || stopped_; });
  --waiting_;
  return !appended_.empty();
}

void RecordQueue::stop() {
  const std::scoped_lock lock(mutex_);
  stopped_ = true;
  filled_.notify_all();
}

std::uint64_t RecordQueue::next() const {
  const std::scoped_lock lock(mutex_);
  return next_;
}

}  // namespace espalier::log
