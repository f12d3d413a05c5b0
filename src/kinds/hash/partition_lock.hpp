// SPDX-License-Identifier: Apache-2.0
// A lock that costs its last holder plain stores (docs/design/hash.md, who writes a partition).
//
// A thread that took it kTurns times in a row with nobody between becomes its owner: from then on
// it says that it is busy with this lock, behind a barrier that costs it nothing, and looks whether
// it is the owner still. Another thread takes that away: it says so, behind a heavy barrier, and
// waits while the owner is busy with this lock. Either the owner sees the one, or the other thread
// the other. What says so lies with the thread and not with the lock, so that a late look of a
// former owner hides no later one.
//
// Invariant: at most one thread is between lock() and unlock().
// Thread: any. Not recursive. A thread that is in several of them at a time takes them in an order
// that is the same for all threads, by lock_among_others(). No thread may block in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/barrier.hpp"
#include "kinds/hash/planted_hash_bugs.hpp"

namespace espalier::hash {

class PartitionLock;

/// A thread, as locks know it.
struct alignas(64) LockHolder {
  std::atomic<const PartitionLock*> busy_with{
      nullptr};  // as its owner; written by the thread alone
};

/// Those of a store. One that a thread gives back serves the next thread, which then owns what it
/// owned: so no lock ever names one that is gone.
class LockHolders {
 public:
  /// Errors: std::bad_alloc.
  [[nodiscard]] LockHolder& take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(all_.size() + 1);
      return all_.emplace_back();
    }
    LockHolder* const holder = free_.back();
    free_.pop_back();
    return *holder;
  }
  void give(LockHolder& holder) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(&holder);  // there is room for all
  }

 private:
  std::mutex mutex_;
  std::deque<LockHolder> all_;
  std::vector<LockHolder*> free_;
};

class PartitionLock {
 public:
  /// How often a thread takes it in a row before it is its own.
  static constexpr std::uint32_t kTurns = 256;

  /// Returns whether it was taken as its owner does, for unlock().
  [[nodiscard]] bool lock(LockHolder& self) {
    if (owner_.load(std::memory_order_relaxed) == &self) [[likely]] {
      reached(Moment::owner_seen);
      self.busy_with.store(this, std::memory_order_release);
      base::frequent_barrier(asymmetric_);
      if (owner_.load(std::memory_order_acquire) == &self || planted(Bug::owner_not_asked_again))
          [[likely]]
        return true;
      self.busy_with.store(nullptr, std::memory_order_release);
    }
    lock_slowly(self);
    return false;
  }
  /// For a thread that is in others too, which is busy with none of them as an owner: it takes
  /// turns, and does not become its owner. To be given back by unlock(self, false).
  void lock_among_others(LockHolder& self) {
    lock_slowly(self);
    turns_ = 0;
    last_ = nullptr;
  }
  void unlock(LockHolder& self, bool as_owner) {
    if (as_owner) [[likely]] {
      self.busy_with.store(nullptr, std::memory_order_release);
      return;
    }
    if (turns_ >= kTurns) {
      turns_ = 0;
      owner_.store(&self, std::memory_order_release);
    }
    taken_.store(false, std::memory_order_release);
  }

 private:
  [[gnu::noinline]] void lock_slowly(LockHolder& self) {
    while (taken_.load(std::memory_order_relaxed) ||
           taken_.exchange(true, std::memory_order_acquire)) {
      reached(Moment::lock_awaited);
      std::this_thread::yield();
    }
    if (const LockHolder* const owner = owner_.load(std::memory_order_relaxed); owner != nullptr) {
      owner_.store(nullptr, std::memory_order_relaxed);
      base::rare_barrier(asymmetric_);
      while (owner->busy_with.load(std::memory_order_acquire) == this &&
             !planted(Bug::owner_not_awaited)) {
        reached(Moment::lock_awaited);
        std::this_thread::yield();
      }
      turns_ = 0;
    }
    turns_ = last_ == &self ? turns_ + 1 : 0;
    last_ = &self;
  }

  std::atomic<const LockHolder*> owner_{nullptr};  // changed by who has `taken_`
  std::atomic<bool> taken_{false};
  const bool asymmetric_ = base::register_asymmetric_barriers();
  std::uint32_t turns_ = 0;           // guarded by taken_
  const LockHolder* last_ = nullptr;  // guarded by taken_
};

/// Holds a lock until it is destroyed.
class PartitionGuard {
 public:
  PartitionGuard(PartitionLock& lock, LockHolder& self)
      : lock_(lock), self_(self), as_owner_(lock.lock(self)) {}
  ~PartitionGuard() { lock_.unlock(self_, as_owner_); }
  PartitionGuard(const PartitionGuard&) = delete;
  PartitionGuard& operator=(const PartitionGuard&) = delete;

 private:
  PartitionLock& lock_;
  LockHolder& self_;
  const bool as_owner_;
};

}  // namespace espalier::hash
