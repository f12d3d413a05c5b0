// SPDX-License-Identifier: Apache-2.0
// Pins hold an epoch beyond the walk that exposed it: what the walk found stays readable, by any
// thread, until the pin is destroyed.
//
// A reclaimer that scans the exposed epochs first, and then the pins, misses none: a pin is taken
// while the walk's epoch is still exposed. If the scan of the slots saw that epoch, it held the
// memory back; if it saw that the walk had ended, the pin was taken before, and the later scan of
// the pins finds it.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

namespace espalier::base {

class EpochPins;

/// One hold on an epoch, until it is destroyed.
class EpochPin {
 public:
  EpochPin() = default;
  EpochPin(EpochPin&& other) noexcept
      : epoch_pins_(std::exchange(other.epoch_pins_, nullptr)), epoch_(other.epoch_) {}
  EpochPin& operator=(EpochPin&& other) noexcept {
    std::swap(epoch_pins_, other.epoch_pins_);
    std::swap(epoch_, other.epoch_);
    return *this;
  }
  ~EpochPin();
  explicit operator bool() const { return epoch_pins_ != nullptr; }

 private:
  friend class EpochPins;
  EpochPin(EpochPins& epoch_pins, std::uint64_t epoch) : epoch_pins_(&epoch_pins), epoch_(epoch) {}

  EpochPins* epoch_pins_ = nullptr;
  std::uint64_t epoch_ = 0;
};

/// The pins of one store. It outlives them.
class EpochPins {
 public:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  EpochPins() = default;
  EpochPins(const EpochPins&) = delete;
  EpochPins& operator=(const EpochPins&) = delete;

  /// Requires: the caller's walk exposes this epoch, or an older one. Cost: a lock.
  /// Errors: std::bad_alloc, and nothing is held.
  [[nodiscard]] EpochPin pin(std::uint64_t epoch) {
    const std::lock_guard lock(mutex_);
    ++counts_[epoch];
    return EpochPin(*this, epoch);
  }
  /// The oldest pinned epoch: no pin holds back what carries a stamp below it; kNone without pins.
  [[nodiscard]] std::uint64_t oldest() const {
    const std::lock_guard lock(mutex_);
    return counts_.empty() ? kNone : counts_.begin()->first;
  }

 private:
  friend class EpochPin;
  void unpin(std::uint64_t epoch) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(epoch);
    if (--found->second == 0) counts_.erase(found);
  }

  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint32_t> counts_;
};

inline EpochPin::~EpochPin() {
  if (epoch_pins_ != nullptr) epoch_pins_->unpin(epoch_);
}

}  // namespace espalier::base
