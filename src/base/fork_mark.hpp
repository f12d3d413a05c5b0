// SPDX-License-Identifier: Apache-2.0
// What fork() does to objects that stand for more than their own bytes: connections, shared memory,
// threads. The child has copies of them, and nothing of what they stand for.
//
// Each process has a generation, which pthread_atfork raises in a child. A mark keeps that of the
// process that made it, so a copy of an object can be told from the object. Whatever has a mark is
// used and destroyed only where it was made: a copy may be locked for ever by a thread that the
// child does not have, and what it points to may not be mapped. So copies are left as they are;
// their memory goes with the child.
//
// A child that came about without the handlers of pthread_atfork (by _Fork(), or by a system call)
// cannot be told from its parent.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace espalier::base {

namespace detail {
extern std::atomic<std::uint32_t> fork_generation;
}  // namespace detail

/// Which process made something.
class ForkMark {
 public:
  /// Whether this is a copy that fork() made. Cost: a relaxed load.
  [[nodiscard]] bool is_copy() const {
    return made_in_ != detail::fork_generation.load(std::memory_order_relaxed);
  }

 private:
  std::uint32_t made_in_ = detail::fork_generation.load(std::memory_order_relaxed);
};

}  // namespace espalier::base
