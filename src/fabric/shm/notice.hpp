// SPDX-License-Identifier: Apache-2.0
// Wakes an endpoint's own thread, which sleeps until there is something to do.
//
// Invariants
// I1. No wake-up is lost: a thread that posts something writes it, passes a full barrier, and then
//     checks whether the endpoint's thread sleeps; that thread announces that it sleeps, passes a
//     full barrier, and then checks whether there is something. One of the two sees the other.
//
// Thread: as each function says.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/barrier.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::shm {

class Notice {
 public:
  /// Returns false where the system refuses: errno says why.
  [[nodiscard]] bool open() {
    wake_event_ = memory::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return static_cast<bool>(wake_event_);
  }

  /// Announces something in an inbox. Thread: any.
  void raise() {
    raised_.store(true, std::memory_order_release);
    nudge();
  }
  /// Ends a wait() that goes on, or the next one. Thread: any.
  void wake() {
    woken_.store(true, std::memory_order_relaxed);
    nudge();
  }
  /// Ends a wait() that goes on, if one does: for what it sees by itself otherwise. Thread: any.
  void nudge() {
    base::full_fence();
    if (!asleep_.load(std::memory_order_relaxed)) return;
    const std::uint64_t one = 1;
    // The write fails only when the event's counter is at its maximum.
    [[maybe_unused]] const auto written = ::write(wake_event_.number(), &one, sizeof one);
  }

  /// Whether there has been a raise() since the last time. Thread: the endpoint's. Cost: a load.
  [[nodiscard]] bool take() {
    return raised_.load(std::memory_order_relaxed) &&
           raised_.exchange(false, std::memory_order_acquire);
  }
  /// Sleeps, unless there is something: `look` says so, after a full barrier. Thread: the
  /// endpoint's.
  template <class Look>
  void wait(std::uint64_t timeout_ns, const Look& look) {
    if (!begin(look)) doze(timeout_ns);
    asleep_.store(false, std::memory_order_relaxed);
    woken_.store(false, std::memory_order_relaxed);
  }

  /// The same for a caller that sleeps by itself, on a descriptor that becomes readable when there
  /// is something. Followed by end_sleep().
  template <class Look>
  int begin_sleep(const Look& look) {
    if (begin(look)) nudge();
    return wake_event_.number();
  }
  void end_sleep() {
    asleep_.store(false, std::memory_order_relaxed);
    woken_.store(false, std::memory_order_relaxed);
    clear();
  }

 private:
  /// Returns whether there is something already.
  template <class Look>
  bool begin(const Look& look) {
    asleep_.store(true, std::memory_order_relaxed);
    base::full_fence();
    return woken_.load(std::memory_order_relaxed) || raised_.load(std::memory_order_relaxed) ||
           look();
  }
  void clear() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_event_.number(), &count, sizeof count);
  }
  void doze(std::uint64_t timeout_ns) const {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    constexpr std::uint64_t kSecondsMax = 1'000'000;
    const timespec timeout{static_cast<time_t>(std::min(timeout_ns / kSecond, kSecondsMax)),
                           static_cast<long>(timeout_ns % kSecond)};
    pollfd watched{wake_event_.number(), POLLIN, 0};
    if (::ppoll(&watched, 1, &timeout, nullptr) > 0) clear();
  }

  memory::Descriptor wake_event_;
  std::atomic<bool> raised_{false};
  std::atomic<bool> woken_{false};
  std::atomic<bool> asleep_{false};
};

}  // namespace espalier::fabric::shm
