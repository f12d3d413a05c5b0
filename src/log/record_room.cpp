// SPDX-License-Identifier: Apache-2.0
#include "log/record_room.hpp"

#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"

namespace espalier::log {

RecordRoom::~RecordRoom() {
  ESPALIER_ASSERT(held_bytes_ == 0);  // no caller has room when the log ends
  ESPALIER_ASSERT(waiters_.empty());
}

Result<std::span<std::byte>> RecordRoom::reserve(std::size_t bytes) noexcept {
  if (waiting_ != 0 && refused_.load().code == Code::invalid) return fail(Code::busy);
  const auto room = claimed_ == 0 ? give(bytes) : give_beside_claim(bytes);
  if (!room && room.error().code == Code::busy) claim(bytes);
  // One that waits may have been refused for what this had for a moment.
  if (!room && waiting_ != 0) give_in_turn();
  return room;
}

void RecordRoom::claim(std::size_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  if (paused_ || bytes <= claimed_) return;
  if (claimed_ == 0) passed_ = 0;
  claimed_ = bytes;
  unclaimed_since_ns_ = 0;
}

Result<std::span<std::byte>> RecordRoom::give_beside_claim(std::size_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  const bool is_shorter = bytes < claimed_;
  const bool passes = is_shorter && passed_ + bytes <= held_bytes_max_;
  const bool has_failed = refused_.load().code != Code::invalid;
  if (is_shorter && !passes && !has_failed && !is_abandoned()) return fail(Code::busy);
  const auto room = give(bytes);
  if (room && passes) passed_ += bytes;
  if (room && !passes) claimed_ = 0;
  return room;
}

/// Whether the claim has expired: there has been room for it for kClaimNs.
bool RecordRoom::is_abandoned() noexcept {
  if (paused_ || !has_room(held_bytes_, sizeof(QueuedRecord) + claimed_)) {
    unclaimed_since_ns_ = 0;
    return false;
  }
  const std::uint64_t now_ns = base::monotonic_ns();
  if (unclaimed_since_ns_ == 0) unclaimed_since_ns_ = now_ns;
  return now_ns > unclaimed_since_ns_ + claim_ns_;
}

Result<std::span<std::byte>> RecordRoom::give(std::size_t bytes) noexcept {
  if (const Error error = refused_; error.code != Code::invalid) return std::unexpected(error);
  if (bytes > record_bytes_max_) return fail(Code::value_too_long);
  if (paused_) return fail(Code::busy);
  const std::size_t whole = sizeof(QueuedRecord) + bytes;
  std::size_t held = held_bytes_;
  do {
    if (!has_room(held, whole)) return fail(Code::busy);
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
