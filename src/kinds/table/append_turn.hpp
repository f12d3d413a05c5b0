// SPDX-License-Identifier: Apache-2.0
// Mutual exclusion of the appends of a table. The turn belongs to the append, not to a thread,
// because different helper threads may run the steps of one append.
//
// Thread: any.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

namespace espalier::table {

class AppendTurn {
 public:
  /// Holds the turn while it lives.
  class Held {
   public:
    Held() = default;
    Held(Held&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
    Held& operator=(Held&& other) noexcept {
      std::swap(turn_, other.turn_);
      return *this;
    }
    ~Held() {
      if (turn_ != nullptr) turn_->end();
    }
    explicit operator bool() const { return turn_ != nullptr; }

   private:
    friend class AppendTurn;
    explicit Held(AppendTurn* turn) : turn_(turn) {}
    AppendTurn* turn_ = nullptr;
  };

  /// Waits for the turn.
  [[nodiscard]] Held take() {
    std::unique_lock lock(mutex_);
    free_.wait(lock, [this] { return !taken_; });
    taken_ = true;
    return Held(this);
  }
  /// Empty if another append has the turn.
  [[nodiscard]] Held try_take() {
    const std::lock_guard lock(mutex_);
    if (taken_) return {};
    taken_ = true;
    return Held(this);
  }

 private:
  void end() {
    // Within the lock, because the table may be destroyed as soon as another append has the turn.
    const std::lock_guard lock(mutex_);
    taken_ = false;
    free_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable free_;
  bool taken_ = false;
};

}  // namespace espalier::table
