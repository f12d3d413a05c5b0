// SPDX-License-Identifier: Apache-2.0
#include "log/record_room.hpp"

#include <new>
#include <utility>

#include "base/assert.hpp"

namespace espalier::log {

RecordRoom::~RecordRoom() {
  ESPALIER_ASSERT(held_bytes_ == 0);  // nobody has room in a log that ends
  ESPALIER_ASSERT(waiters_.empty());
}

Result<std::span<std::byte>> RecordRoom::reserve(std::size_t bytes) noexcept {
  if (waiting_ != 0 && refused_.load().code == Code::invalid) return fail(Code::busy);
  const auto room = give(bytes);
  // One that waits may have been refused for what this had for a moment.
  if (!room && waiting_ != 0) give_in_turn();
  return room;
}

Result<std::span<std::byte>> RecordRoom::give(std::size_t bytes) noexcept {
  if (const Error error = refused_; error.code != Code::invalid) return std::unexpected(error);
  if (bytes > record_bytes_max_) return fail(Code::value_too_long);
  if (paused_) return fail(Code::busy);
  const std::size_t whole = sizeof(QueuedRecord) + bytes;
  std::size_t held = held_bytes_;
  do {
    // One that is longer than what may be held comes through alone.
    if (held != 0 && held + whole > held_bytes_max_) return fail(Code::busy);
  } while (!held_bytes_.compare_exchange_weak(held, held + whole));
  void* const memory = ::operator new(whole, std::nothrow);
  if (memory == nullptr) {
    held_bytes_ -= whole;
    return fail(Code::out_of_memory);
  }
  return (new (memory) QueuedRecord{nullptr, 0, bytes})->payload();
}

void RecordRoom::wait(RoomWaiter& waiter, std::size_t bytes) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    waiter.bytes_ = bytes;
    waiters_.push(&waiter);
    ++waiting_;
  }
  give_in_turn();
}

bool RecordRoom::cancel(RoomWaiter& waiter) noexcept {
  bool waited = false;
  {
    const std::scoped_lock lock(mutex_);
    waiters_.sort_out([&](RoomWaiter* one) {
      if (one == &waiter) {
        waited = true;
        --waiting_;
      } else {
        waiters_.push(one);
      }
    });
  }
  give_in_turn();
  return waited;
}

void RecordRoom::release(QueuedRecord* record) noexcept {
  held_bytes_ -= sizeof(QueuedRecord) + record->bytes;
  ::operator delete(record);
  if (waiting_ != 0) give_in_turn();
}

void RecordRoom::release_all(RecordList& records) noexcept {
  while (!records.empty()) release(records.pop());
}

void RecordRoom::pause(bool paused) noexcept {
  paused_ = paused;
  give_in_turn();
}

void RecordRoom::refuse(Error error) noexcept {
  refused_.store(error);
  give_in_turn();
}

void RecordRoom::give_in_turn() noexcept {
  const std::scoped_lock lock(mutex_);
  while (!waiters_.empty()) {
    const auto room = give(waiters_.front().bytes_);
    const bool waits = !room && room.error().code == Code::busy;
    if (waits && refused_.load().code == Code::invalid) return;
    --waiting_;
    waiters_.pop()->complete(room);
  }
}

}  // namespace espalier::log
