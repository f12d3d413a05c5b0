// SPDX-License-Identifier: Apache-2.0
// A value that threads read while another thread may replace it (read-copy-update by reference
// counts). A reader's value stays alive until it has finished with it; a replaced value that no
// reader holds is destroyed immediately.
//
//   base::Current<Target> target(first);
//   { const auto now = target.use(); ask(*now); }
//   target.replace(second);
//
// Cost: slots are never freed while this lives, and there are as many as values were in use at a
// time. So a thread may count itself in a slot that it has just loaded, and then check whether that
// is still the current one.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace espalier::base {

template <class T>
class Current {
  struct Slot {
    std::atomic<std::uint64_t> users{0};
    std::optional<T> value;  // changes only while it is neither current nor in use
  };

 public:
  explicit Current(T first) {
    slots_.emplace_back().value.emplace(std::move(first));
    now_.store(&slots_.back());
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  /// Holds the value that was current at one moment; it lives as long as this.
  class Use {
   public:
    Use(Use&& other) noexcept : of_(other.of_), slot_(std::exchange(other.slot_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (slot_ != nullptr) of_.leave(*slot_);
    }
    const T& operator*() const { return *slot_->value; }
    const T* operator->() const { return &*slot_->value; }

   private:
    friend class Current;
    Use(Current& of, Slot* slot) : of_(of), slot_(slot) {}
    Current& of_;
    Slot* slot_;  // null: this was moved away
  };

  /// Cost: two atomic additions.
  [[nodiscard]] Use use() {
    for (;;) {
      Slot* const slot = now_.load();
      slot->users.fetch_add(1);  // before it is checked again: replace() does the reverse
      if (now_.load() == slot) return Use(*this, slot);
      leave(*slot);
    }
  }

  /// Replaces the current value if `is_due(current)`; returns whether it did. Throws
  /// std::bad_alloc, and then nothing has changed.
  template <class IsDue>
  bool replace(T value, const IsDue& is_due) {
    std::vector<T> left;  // destroyed after the lock is released
    const std::scoped_lock lock(mutex_);
    left.reserve(slots_.size());
    if (!is_due(std::as_const(*now_.load()->value))) return false;
    take_unused(left);
    Slot* free = nullptr;
    for (Slot& slot : slots_) {
      if (!slot.value && slot.users.load() == 0) free = &slot;
    }
    if (free == nullptr) free = &slots_.emplace_back();
    free->value.emplace(std::move(value));
    now_.store(free);
    take_unused(left);
    return true;
  }

 private:
  void leave(Slot& slot) {
    if (slot.users.fetch_sub(1) != 1 || now_.load() == &slot) return;
    std::optional<T> left;
    const std::scoped_lock lock(mutex_);
    if (now_.load() == &slot || slot.users.load() != 0) return;
    left.swap(slot.value);
  }
  // Requires: the lock; room for as many as there are slots.
  void take_unused(std::vector<T>& left) {
    for (Slot& slot : slots_) {
      if (&slot == now_.load() || !slot.value || slot.users.load() != 0) continue;
      left.push_back(std::move(*slot.value));
      slot.value.reset();
    }
  }

  std::atomic<Slot*> now_{nullptr};
  std::mutex mutex_;  // guards that slots are filled, emptied and made
  std::deque<Slot> slots_;
};

}  // namespace espalier::base
