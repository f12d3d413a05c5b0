// SPDX-License-Identifier: Apache-2.0
#include "log/record_queue.hpp"

#include <new>

#include "base/assert.hpp"

namespace espalier::log {

RecordQueue::~RecordQueue() {
  for (QueuedRecord* record = take(); record != nullptr;) {
    QueuedRecord* const next = record->next;
    release(record);
    record = next;
  }
  ESPALIER_ASSERT(held_bytes_ == 0);  // nobody has room in a queue that ends
}

Result<std::span<std::byte>> RecordQueue::reserve(std::size_t bytes) noexcept {
  if (const Error error = refused_; error.code != Code::invalid) return std::unexpected(error);
  if (bytes > record_bytes_max_) return fail(Code::value_too_long);
  const std::size_t whole = sizeof(QueuedRecord) + bytes;
  const std::size_t before = held_bytes_.fetch_add(whole);
  // One that is longer than what may be held comes through alone.
  if (before != 0 && before + whole > held_bytes_max_) {
    held_bytes_ -= whole;
    return fail(Code::busy);
  }
  void* const memory = ::operator new(whole, std::nothrow);
  if (memory == nullptr) {
    held_bytes_ -= whole;
    return fail(Code::out_of_memory);
  }
  return (new (memory) QueuedRecord{nullptr, 0, bytes})->payload();
}

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

void RecordQueue::release(QueuedRecord* record) noexcept {
  held_bytes_ -= sizeof(QueuedRecord) + record->bytes;
  ::operator delete(record);
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
