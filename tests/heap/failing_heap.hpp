// SPDX-License-Identifier: Apache-2.0
// Makes the heap fail at a chosen allocation of this thread. A program with a test that includes
// this replaces operator new for all its tests; without a request for failures that one behaves as
// usual (failing_heap.cpp).
//
// Thread: a request affects only its own thread.
#pragma once

#include <cstdint>

namespace espalier::test {

class FailingHeap {
 public:
  enum class Failure : std::uint8_t {
    once,     ///< one allocation fails
    for_good  ///< so do all later ones
  };

  /// Lets the next `n` allocations of this thread succeed, and fails the one after them.
  FailingHeap(std::int64_t n, Failure failure);
  ~FailingHeap() { stop(); }
  FailingHeap(const FailingHeap&) = delete;
  FailingHeap& operator=(const FailingHeap&) = delete;

  /// Lets all allocations succeed again.
  void stop();
  /// Whether an allocation has failed.
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

}  // namespace espalier::test
