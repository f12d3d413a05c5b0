// SPDX-License-Identifier: Apache-2.0
// A lock biased to its last holder, which then pays only plain stores (docs/design/hash.md).
//
// A thread that took it kTurns times in a row becomes its owner. From then on it announces in
// `busy_with` that it is inside this lock, behind a barrier that costs it nothing, and checks that
// it still is the owner. Another thread revokes the ownership: it clears `owner_`, behind a heavy
// barrier, and waits while the owner is inside. Either the owner sees the revocation, or the other
// thread sees the owner inside. `busy_with` belongs to the thread and not to the lock, so that a
// late check of a former owner hides no later one.
//
// Invariant: at most one thread is between lock() and unlock().
// Thread: any. Not recursive. A thread that holds several at a time takes them by
// lock_among_others(), in an order that is the same for all threads. No thread may block while it
// holds one.
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

/// A thread's identity towards locks.
struct alignas(64) LockHolder {
  std::atomic<const PartitionLock*> busy_with{
      nullptr};  // as its owner; written by the thread alone
};

/// The LockHolders of a store. One that a thread returns serves the next thread, which then owns
/// the same locks: so no lock ever names a destroyed holder.
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
  /// Consecutive acquisitions after which a thread becomes the owner.
  static constexpr std::uint32_t kTurns = 256;

  /// Returns whether it was taken as its owner, for unlock().
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
  /// For a thread that holds several locks, none of them as an owner: it waits its turn, and does
  /// not become the owner. To be released by unlock(self, false).
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

  std::atomic<const LockHolder*> owner_{nullptr};  // changed by the holder of `taken_`
  std::atomic<bool> taken_{false};
  const bool asymmetric_ = base::register_asymmetric_barriers();
  std::uint32_t turns_ = 0;           // guarded by taken_
  const LockHolder* last_ = nullptr;  // guarded by taken_
};

/// Holds a lock for a scope.
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
