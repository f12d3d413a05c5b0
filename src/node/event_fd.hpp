// SPDX-License-Identifier: Apache-2.0
// How other threads wake one that waits for descriptors.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "memory/shared_memory.hpp"

namespace espalier::node {

/// A descriptor that can be read from when somebody has rung. Thread: any may ring().
class EventFd {
 public:
  /// Returns false where the system refuses: errno says why.
  [[nodiscard]] bool open() {
    descriptor_ = memory::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return static_cast<bool>(descriptor_);
  }
  void signal() const {
    const std::uint64_t one = 1;
    // It is refused only where it has rung as often as can be counted.
    [[maybe_unused]] const auto written = ::write(descriptor_.number(), &one, sizeof one);
  }
  /// Forgets that it rang.
  void clear() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(descriptor_.number(), &count, sizeof count);
  }
  [[nodiscard]] int number() const { return descriptor_.number(); }

 private:
  memory::Descriptor descriptor_;
};

}  // namespace espalier::node
