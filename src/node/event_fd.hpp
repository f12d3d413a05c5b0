// SPDX-License-Identifier: Apache-2.0
// Wakes a thread that waits for descriptors.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "memory/shared_memory.hpp"

namespace espalier::node {

/// A descriptor that is readable once signalled. Thread: any may signal().
class EventFd {
 public:
  /// Returns false if the system refuses; errno has the reason.
  [[nodiscard]] bool open() {
    descriptor_ = memory::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return static_cast<bool>(descriptor_);
  }
  void signal() const {
    const std::uint64_t one = 1;
    // Fails only if the count is at its maximum.
    [[maybe_unused]] const auto written = ::write(descriptor_.number(), &one, sizeof one);
  }
  /// Resets it to not signalled.
  void clear() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(descriptor_.number(), &count, sizeof count);
  }
  [[nodiscard]] int number() const { return descriptor_.number(); }

 private:
  memory::Descriptor descriptor_;
};

}  // namespace espalier::node
