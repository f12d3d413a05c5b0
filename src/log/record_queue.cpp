// SPDX-License-Identifier: Apache-2.0
#include "log/record_queue.hpp"

#include "base/assert.hpp"

namespace espalier::log {

std::uint64_t RecordQueue::append(std::span<std::byte> bytes) noexcept {
  QueuedRecord* const record = QueuedRecord::of(bytes);
  ESPALIER_ASSERT(record->bytes == bytes.size() && record->sequence == 0);
  const std::scoped_lock lock(mutex_);
  const std::uint64_t sequence = next_++;
  record->sequence = sequence;
  (first_ == nullptr ? first_ : last_->next) = record;
  last_ = record;
  if (waiting_) filled_.notify_one();
  return sequence;
}

QueuedRecord* RecordQueue::take() noexcept {
  const std::scoped_lock lock(mutex_);
  QueuedRecord* const all = first_;
  first_ = last_ = nullptr;
  return all;
}

bool RecordQueue::wait() {
  std::unique_lock lock(mutex_);
  waiting_ = true;
  filled_.wait(lock, [this] { return first_ != nullptr || stopped_; });
  waiting_ = false;
  return first_ != nullptr;
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
