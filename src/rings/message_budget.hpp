// SPDX-License-Identifier: Apache-2.0
// Admission control for the memory of messages in flight: long requests that have not arrived whole
// or wait to be run, and responses that wait until their client has read earlier ones. The client
// decides how much of it the node needs; so the total is bounded, and no connection may starve the
// others.
#pragma once

#include <atomic>
#include <cstdint>

namespace espalier::rings {

/// The memory that the messages of all connections may take together. Thread: any.
class MessageBudget {
 public:
  explicit MessageBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  [[nodiscard]] bool take(std::uint64_t bytes) {
    const std::uint64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    if (before <= bytes_max_ && bytes <= bytes_max_ - before) return true;
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  /// Takes the bytes even if the budget is exceeded.
  void take_anyway(std::uint64_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void give(std::uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t left() const {
    const std::uint64_t used = this->used();
    return used < bytes_max_ ? bytes_max_ - used : 0;
  }

 private:
  std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> used_{0};
};

/// One connection's share of a budget: never more than it leaves for all others. However many
/// connections take all they can, one more still gets as much as the last of them (dynamic
/// thresholds, Choudhury and Hahne 1998). Thread: one at a time.
class MessageShare {
 public:
  /// Without a limit: for messages that this process asked for.
  MessageShare() = default;
  explicit MessageShare(MessageBudget& all) : all_(&all) {}
  MessageShare(const MessageShare&) = delete;
  MessageShare& operator=(const MessageShare&) = delete;

  /// Whether so many could be taken now.
  [[nodiscard]] bool allows(std::uint64_t bytes) const {
    if (all_ == nullptr) return true;
    const std::uint64_t left = all_->left();
    return bytes <= left && used_ + bytes <= left - bytes;
  }
  [[nodiscard]] bool take(std::uint64_t bytes) {
    if (!allows(bytes) || (all_ != nullptr && !all_->take(bytes))) return false;
    used_ += bytes;
    return true;
  }
  void take_anyway(std::uint64_t bytes) {
    if (all_ != nullptr) all_->take_anyway(bytes);
    used_ += bytes;
  }
  void give(std::uint64_t bytes) {
    if (all_ != nullptr) all_->give(bytes);
    used_ -= bytes;
  }
  [[nodiscard]] std::uint64_t used() const { return used_; }

 private:
  MessageBudget* all_ = nullptr;
  std::uint64_t used_ = 0;
};

}  // namespace espalier::rings
