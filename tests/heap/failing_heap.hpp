// SPDX-License-Identifier: Apache-2.0
// Lets the heap fail at a chosen allocation of this thread. A program with a test that includes
// this has operator new replaced, for all of its tests, by one that behaves as ever while nobody
// asks for failures (failing_heap.cpp).
//
// Thread: what one thread asks for, only it meets.
#pragma once

#include <cstdint>

namespace espalier::test {

class FailingHeap {
 public:
  enum class Failure : std::uint8_t {
    once,     ///< one allocation fails
    for_good  ///< so do all behind it
  };

  /// From now on lets `n` allocations of this thread succeed, and fails the one after them.
  FailingHeap(std::int64_t n, Failure failure);
  ~FailingHeap() { stop(); }
  FailingHeap(const FailingHeap&) = delete;
  FailingHeap& operator=(const FailingHeap&) = delete;

  /// Lets everything succeed again.
  void stop();
  /// Whether an allocation has failed.
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

}  // namespace espalier::test
