// SPDX-License-Identifier: Apache-2.0
// A gate before memory: threads of this process enter it for each access. After close() no access
// is in progress, and none begins.
//
// Each thread counts itself in a slot that few others share. It counts first, then checks the gate;
// close() closes first, then reads the slots: so one of the two sees the other.
//
// Thread: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace espalier::region {

class AccessGate {
 public:
  AccessGate() = default;
  AccessGate(const AccessGate&) = delete;
  AccessGate& operator=(const AccessGate&) = delete;

  /// One access. False: the gate is closed, and the caller must not access the memory. Must be
  /// short, because close() waits for it. Cost: two atomic operations on a line that few threads
  /// share.
  class Pass {
   public:
    explicit Pass(AccessGate& gate) : inside_(gate.places_[place_of_thread()].inside) {
      inside_.fetch_add(1, std::memory_order_seq_cst);
      passed_ = !gate.closed_.load(std::memory_order_seq_cst);
    }
    ~Pass() { inside_.fetch_sub(1, std::memory_order_release); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    explicit operator bool() const { return passed_; }

   private:
    std::atomic<std::uint64_t>& inside_;
    bool passed_;
  };

  /// Closes the gate and waits for accesses in progress.
  void close() {
    closed_.store(true, std::memory_order_seq_cst);
    for (const Place& place : places_) {
      while (place.inside.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
    }
  }
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }

 private:
  static constexpr std::size_t kGatePlaces = 8;
  struct alignas(64) Place {
    std::atomic<std::uint64_t> inside{0};
  };
  static std::size_t place_of_thread() {
    static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t number = threads.fetch_add(1, std::memory_order_relaxed);
    return number % kGatePlaces;
  }

  std::atomic<bool> closed_{false};
  std::array<Place, kGatePlaces> places_;
};

}  // namespace espalier::region
