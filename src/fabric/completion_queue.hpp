// SPDX-License-Identifier: Apache-2.0
// Where the ends of work requests are told.
//
// Invariants
// I1. Never more entries than places: whatever will be told reserves its place when it is posted,
//     so a queue cannot overflow, and post() refuses what would not fit.
//
// Thread: that of its endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/assert.hpp"
#include "fabric/types.hpp"

namespace espalier::fabric {

class Endpoint;

class CompletionQueue {
 public:
  /// `capacity`: work requests and receives that may be posted, or told and not yet polled, over
  /// all pairs that tell here. The endpoint outlives the queue.
  CompletionQueue(Endpoint& endpoint, std::uint32_t capacity);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  /// Makes progress, then takes what has been told, oldest first. Returns how many.
  std::size_t poll(std::span<Completion> into);
  /// Completions that poll() would take without making progress.
  [[nodiscard]] std::uint32_t waiting() const { return end_ - begin_; }

  // For transports.

  /// Sets a place aside; false: there is none.
  [[nodiscard]] bool reserve() {
    if (waiting() + reserved_ >= capacity_) return false;
    ++reserved_;
    return true;
  }
  /// Gives such a place back: there is nothing to tell.
  void release() {
    ESPALIER_DEBUG_ASSERT(reserved_ != 0);
    --reserved_;
  }
  /// Uses such a place.
  void push(const Completion& completion) {
    ESPALIER_DEBUG_ASSERT(reserved_ != 0);
    --reserved_;
    entries_[end_++ & mask_] = completion;
  }

 private:
  Endpoint& endpoint_;
  std::uint32_t capacity_;
  std::uint32_t mask_;
  std::unique_ptr<Completion[]> entries_;
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t reserved_ = 0;
};

}  // namespace espalier::fabric
