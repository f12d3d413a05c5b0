// SPDX-License-Identifier: Apache-2.0
// How many queries a node runs at a time, and how much memory their groups have together. What is
// beyond that waits, or is refused: so many clients cannot make it hold more.
//
// Thread: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace espalier::offload {

class QueryLimits {
 public:
  static constexpr std::uint32_t kRunning = 64;
  static constexpr std::uint32_t kWaiting = 1000;
  static constexpr std::uint64_t kGroupBytes = std::uint64_t{1} << 30;  ///< of all together
  static constexpr std::uint64_t kGroupBytesOfOne = std::uint64_t{64} << 20;

  /// A place among those that run or that wait; none where there was none left.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(count_, other.count_);
      return *this;
    }
    ~Place() {
      if (count_ != nullptr) count_->fetch_sub(1, std::memory_order_relaxed);
    }
    explicit operator bool() const { return count_ != nullptr; }

   private:
    friend class QueryLimits;
    explicit Place(std::atomic<std::uint32_t>* count) : count_(count) {}
    std::atomic<std::uint32_t>* count_ = nullptr;
  };
  [[nodiscard]] Place run() { return take(running_, kRunning); }
  [[nodiscard]] Place wait() { return take(waiting_, kWaiting); }

  /// Takes memory for the groups of one query: less, the less is left, but never less than `least`,
  /// which all that run may have beyond the limit. To be given back.
  [[nodiscard]] std::uint64_t take_group_bytes(std::uint64_t least) {
    std::int64_t left = left_.load(std::memory_order_relaxed);
    std::uint64_t taken = 0;
    do {
      const auto half = static_cast<std::uint64_t>(std::max<std::int64_t>(left, 0)) / 2;
      taken = std::clamp(half, least, kGroupBytesOfOne);
    } while (!left_.compare_exchange_weak(left, left - static_cast<std::int64_t>(taken),
                                          std::memory_order_relaxed));
    return taken;
  }
  void give_group_bytes(std::uint64_t bytes) {
    left_.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t group_bytes_left() const {
    return left_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t running() const { return running_.load(std::memory_order_relaxed); }

 private:
  static Place take(std::atomic<std::uint32_t>& count, std::uint32_t most) {
    if (count.fetch_add(1, std::memory_order_relaxed) < most) return Place(&count);
    count.fetch_sub(1, std::memory_order_relaxed);
    return {};
  }

  std::atomic<std::uint32_t> running_{0};
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<std::int64_t> left_{std::int64_t{kGroupBytes}};
};

}  // namespace espalier::offload
