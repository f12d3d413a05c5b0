// SPDX-License-Identifier: Apache-2.0
// Memory for messages that are on their way: long requests that have not come whole or wait for
// their turn, and answers that wait until their client has read others. How much of it a client
// makes us need, it says itself; so all of it is bounded, and none may take what others need.
#pragma once

#include <atomic>
#include <cstdint>

namespace espalier::rings {

/// What the messages of all connections may take together. Thread: any.
class MessageBudget {
 public:
  explicit MessageBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  [[nodiscard]] bool take(std::uint64_t bytes) {
    const std::uint64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    if (before <= bytes_max_ && bytes <= bytes_max_ - before) return true;
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  /// Takes them though there may be too few.
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

/// What one connection has of a budget: never more than it leaves for all others. However many take
/// what they can get, one more then still gets as much as the last of them (dynamic thresholds,
/// Choudhury and Hahne 1998). Thread: one at a time.
class MessageShare {
 public:
  /// Without a limit: for messages that were asked for.
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
