// SPDX-License-Identifier: Apache-2.0
// A value that threads use while another one may take its place. Who uses it keeps it until it has
// done so; one that is nobody's any more goes at once.
//
//   base::Current<Target> target(first);
//   { const auto now = target.use(); ask(*now); }
//   target.replace(second);
//
// A slot is never given back while this lives, and of as many as were in use at a time: so a thread
// may count itself in one that it has just read, and look then whether that is the current one.
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
    std::optional<T> value;  // changes where it is not the current one and nobody uses it
  };

 public:
  explicit Current(T first) {
    slots_.emplace_back().value.emplace(std::move(first));
    now_.store(&slots_.back());
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  /// The value that was current at one moment; it stays as long as this.
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
      slot->users.fetch_add(1);  // before it is looked at again: replace() does it the other way
      if (now_.load() == slot) return Use(*this, slot);
      leave(*slot);
    }
  }

  /// Has another value be the current one, if `is_due(current)`; returns whether it was. Throws
  /// std::bad_alloc, and then nothing has changed.
  template <class IsDue>
  bool replace(T value, const IsDue& is_due) {
    std::vector<T> left;  // they go behind the lock
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
