// SPDX-License-Identifier: Apache-2.0
// Whose turn it is to append to a table: one append's at a time. It belongs to the append, not to a
// thread, for helpers that take turns at one append may be different threads.
//
// Thread: any.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

namespace espalier::table {

class AppendTurn {
 public:
  /// The turn, as long as this lives.
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

  /// Waits until the others have ended.
  [[nodiscard]] Held take() {
    std::unique_lock lock(mutex_);
    free_.wait(lock, [this] { return !taken_; });
    taken_ = true;
    return Held(this);
  }
  /// Empty: it is another's.
  [[nodiscard]] Held try_take() {
    const std::lock_guard lock(mutex_);
    if (taken_) return {};
    taken_ = true;
    return Held(this);
  }

 private:
  void end() {
    // Within the lock, for the table may be gone as soon as another has the turn.
    const std::lock_guard lock(mutex_);
    taken_ = false;
    free_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable free_;
  bool taken_ = false;
};

}  // namespace espalier::table
