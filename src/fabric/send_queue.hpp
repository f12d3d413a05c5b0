// SPDX-License-Identifier: Apache-2.0
// Work requests of a pair that have not completed: first those in flight, then those that wait.
//
// Thread: that of the queue pair's endpoint.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/assert.hpp"
#include "fabric/types.hpp"

namespace espalier::fabric {

class SendQueue {
 public:
  SendQueue(std::uint32_t depth, std::uint32_t inline_bytes)
      : depth_(depth),
        mask_(std::bit_ceil(depth) - 1),
        inline_bytes_(inline_bytes),
        entries_(std::make_unique<WorkRequest[]>(std::size_t{mask_} + 1)) {}

  /// Takes in a request, with what it carries if that is inlined. Returns false: there is no room.
  [[nodiscard]] bool push(const WorkRequest& request) {
    if (end_ - begin_ == depth_) return false;
    WorkRequest& entry = entries_[end_ & mask_];
    entry = request;
    if (request.inlined && request.bytes != 0) {
      if (!inlined_) {
        inlined_ = std::make_unique<std::byte[]>((std::size_t{mask_} + 1) * inline_bytes_);
      }
      entry.local = &inlined_[std::size_t{end_ & mask_} * inline_bytes_];
      std::copy_n(request.local, request.bytes, entry.local);
    }
    ++end_;
    return true;
  }
  [[nodiscard]] bool empty() const { return begin_ == end_; }
  /// The oldest. Requires: !empty().
  [[nodiscard]] const WorkRequest& front() const { return entries_[begin_ & mask_]; }
  /// Forgets the oldest, begun or not.
  void pop() {
    ESPALIER_DEBUG_ASSERT(!empty());
    if (next_ == begin_) ++next_;
    ++begin_;
  }
  /// Whether some have begun and are not ended.
  [[nodiscard]] bool any_begun() const { return next_ != begin_; }
  [[nodiscard]] bool any_waiting() const { return next_ != end_; }
  /// The oldest that waits. Requires: any_waiting().
  [[nodiscard]] const WorkRequest& next() const { return entries_[next_ & mask_]; }
  /// It has begun.
  void begin_next() { ++next_; }

 private:
  std::uint32_t depth_;
  std::uint32_t mask_;
  std::uint32_t inline_bytes_;
  std::unique_ptr<WorkRequest[]> entries_;
  std::unique_ptr<std::byte[]> inlined_;
  std::uint32_t begin_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t end_ = 0;
};

}  // namespace espalier::fabric
