// SPDX-License-Identifier: Apache-2.0
// The sequence up to which all records are durable, and the objects and threads that wait for it to
// rise (docs/design/durability.md).
//
// A writer hides from readers what is not durable. It first marks its work as done, then puts its
// object in the list (wait_for_rise), and then loads the mark. The thread that raises the mark
// stores it first, and then visits the objects in the list. All of that is sequentially consistent,
// so at least one of the two sees the other.
//
// A thread that sleeps until the mark has risen registers (wake_when_risen) before it loads the
// mark for the last time. It is woken once objects have released what is durable.
//
// Thread: any.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/chain.hpp"

namespace espalier::base {

class DurableMark {
 public:
  /// A mark above every sequence: nothing waits.
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};

  /// An object that holds back what is not durable.
  class Waiter {
   public:
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

   protected:
    Waiter() = default;
    virtual ~Waiter() = default;  // requires that it is in no list: leave()

   private:
    friend class DurableMark;
    /// Releases what is durable. Returns whether something still waits. Is called with the list's
    /// lock held: it must not block, and call nothing of the mark but durable().
    virtual bool release_durable() noexcept = 0;

    std::atomic<bool> listed_ = false;
    Waiter* next_ = nullptr;
  };

  /// A thread that sleeps until the mark has risen.
  class Sleeper {
   public:
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

   protected:
    Sleeper() = default;
    virtual ~Sleeper() = default;  // requires that it is in no list: leave()

   private:
    friend class DurableMark;
    /// Wakes it. Is called with a lock held: it must not block, and call nothing of the mark.
    virtual void wake() noexcept = 0;

    std::atomic<bool> listed_ = false;
    Sleeper* next_ = nullptr;
  };

  explicit DurableMark(std::uint64_t durable = 0) : durable_(durable), released_(durable) {}
  DurableMark(const DurableMark&) = delete;
  DurableMark& operator=(const DurableMark&) = delete;

  /// The highest sequence that is durable with all before it.
  [[nodiscard]] std::uint64_t durable() const { return durable_.load(); }
  [[nodiscard]] const std::atomic<std::uint64_t>& word() const { return durable_; }
  /// The same, after objects have released what was durable up to there.
  [[nodiscard]] std::uint64_t released() const { return released_.load(); }
  /// Whether the log has failed: the mark never rises again, and waiting is in vain.
  [[nodiscard]] bool failed() const { return failed_.load(); }
  /// Whether anything may have to wait.
  [[nodiscard]] bool is_of_records() const { return durable() != kAll; }

  /// Calls `waiter` whenever the mark rises, until it has nothing left. Cost: one load if it is in
  /// the list already, else a lock.
  void wait_for_rise(Waiter& waiter) noexcept {
    if (waiter.listed_.load()) return;
    const std::lock_guard lock(mutex_);
    if (!waiter.listed_.exchange(true)) waiters_.push(&waiter);
  }
  /// Removes it from the list. Requires: it does not wait again. Cost: the list.
  void leave(Waiter& waiter) noexcept {
    const std::lock_guard lock(mutex_);
    waiter.listed_.store(false);
    waiters_.sort_out([&](Waiter* each) {
      if (each != &waiter) waiters_.push(each);
    });
  }

  /// Waits until released() has reached `sequence`, the mark has failed, or the timeout. Returns
  /// whether it has. Requires: the caller holds nothing that readers, or the thread that raises the
  /// mark, wait for.
  bool await(std::uint64_t sequence, std::chrono::nanoseconds at_most) {
    if (released() >= sequence) return true;
    std::unique_lock lock(await_mutex_);
    risen_.wait_for(lock, at_most, [&] { return released() >= sequence || failed(); });
    return released() >= sequence;
  }
  /// Wakes `sleeper` once, when released() has risen or the mark has failed. A rise before this
  /// call wakes nothing: load the mark afterwards. Cost: a lock, or one load if it is in the list
  /// already.
  void wake_when_risen(Sleeper& sleeper) noexcept {
    if (sleeper.listed_.load()) return;
    const std::lock_guard lock(sleepers_mutex_);
    if (!sleeper.listed_.exchange(true)) sleepers_.push(&sleeper);
  }
  /// Removes it from the list. Requires: it does not register again. Cost: the list.
  void leave(Sleeper& sleeper) noexcept {
    const std::lock_guard lock(sleepers_mutex_);
    sleeper.listed_.store(false);
    sleepers_.sort_out([&](Sleeper* each) {
      if (each != &sleeper) sleepers_.push(each);
    });
  }

  /// Raises the mark. Requires: not below the mark; one thread at a time.
  void rise(std::uint64_t durable) noexcept {
    durable_.store(durable);
    {
      const std::lock_guard lock(mutex_);
      waiters_.sort_out([this](Waiter* each) {
        // First: a writer that marks work as done later lists its object again, or finds it listed.
        each->listed_.store(false);
        if (each->release_durable() && !each->listed_.exchange(true)) waiters_.push(each);
      });
    }
    released_.store(durable);
    wake_awaiting();
    wake_all();
  }
  /// Marks it as failed: it never rises again.
  void fail() noexcept {
    failed_.store(true);
    wake_awaiting();
    wake_all();
  }

 private:
  // A thread that has checked the mark under the lock sleeps by now.
  void wake_awaiting() noexcept {
    {
      const std::lock_guard lock(await_mutex_);
    }
    risen_.notify_all();
  }
  void wake_all() noexcept {
    const std::lock_guard lock(sleepers_mutex_);
    sleepers_.sort_out([](Sleeper* each) {
      each->listed_.store(false);
      each->wake();
    });
  }

  std::atomic<std::uint64_t> durable_;
  std::atomic<std::uint64_t> released_;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // guards the list
  Chain<Waiter, &Waiter::next_> waiters_;
  std::mutex await_mutex_;
  std::condition_variable risen_;
  std::mutex sleepers_mutex_;  // guards the list of these
  Chain<Sleeper, &Sleeper::next_> sleepers_;
};

}  // namespace espalier::base
