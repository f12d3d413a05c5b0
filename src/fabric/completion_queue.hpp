// SPDX-License-Identifier: Apache-2.0
// A completion queue [verbs: CQ], for work requests and receives of the pairs of one endpoint.
//
// Invariants
// I1. A queue cannot overflow: each request reserves the entry of its completion when it is posted,
//     and post() refuses what would not fit.
//
// Thread: that of its endpoint.
#pragma once

#include <algorithm>
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
  /// `capacity`: work requests and receives that may be posted, or completed and not yet polled,
  /// over all pairs that use this queue. The endpoint outlives the queue.
  CompletionQueue(Endpoint& endpoint, std::uint32_t capacity);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  /// Makes progress, then takes completions, oldest first. Returns how many.
  std::size_t poll(std::span<Completion> into);
  /// Completions that poll() would take without making progress.
  [[nodiscard]] std::uint32_t waiting() const { return end_ - begin_; }

  // For transports.

  /// Reserves an entry; false: the queue is full.
  [[nodiscard]] bool reserve() {
    if (waiting() + reserved_ >= capacity_) return false;
    ++reserved_;
    return true;
  }
  /// Reserves so many, or as many as there are; returns how many.
  [[nodiscard]] std::uint32_t reserve_up_to(std::size_t wanted) {
    const std::uint32_t free = capacity_ - (waiting() + reserved_);
    const auto got = static_cast<std::uint32_t>(std::min<std::size_t>(wanted, free));
    reserved_ += got;
    return got;
  }
  /// Releases a reserved entry: nothing completes.
  void release() {
    ESPALIER_DEBUG_ASSERT(reserved_ != 0);
    --reserved_;
  }
  /// Writes a completion into a reserved entry.
  void push(const Completion& completion) {
    ESPALIER_DEBUG_ASSERT(reserved_ != 0);
    --reserved_;
    entries_[end_++ & mask_] = pack(completion);
  }

 private:
  // A completion as words. One stored field by field and soon loaded in wider pieces would stall on
  // failed store forwarding, behind all earlier stores, a READ's bytes among them.
  struct Entry {
    std::uint64_t work_id;
    std::uint64_t old_value;
    std::uint64_t pair_bytes;
    std::uint64_t rest;
  };
  [[nodiscard]] static Entry pack(const Completion& from) {
    return {from.work_id, from.old_value, std::uint64_t{from.pair} << 32 | from.bytes,
            std::uint64_t{from.immediate} << 32 | std::uint64_t{from.with_immediate} << 16 |
                std::uint64_t{static_cast<std::uint8_t>(from.opcode)} << 8 |
                static_cast<std::uint8_t>(from.status)};
  }
  static void unpack(const Entry& entry, Completion& into);

  Endpoint& endpoint_;
  std::uint32_t capacity_;
  std::uint32_t mask_;
  std::unique_ptr<Entry[]> entries_;
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t reserved_ = 0;
};

}  // namespace espalier::fabric
