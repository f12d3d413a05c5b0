// SPDX-License-Identifier: Apache-2.0
// What fork() does to objects that own more than their own bytes: connections, shared memory,
// threads. The child has copies of the objects, and nothing of what they own.
//
// Each process has a generation, which pthread_atfork raises in a child. A mark keeps that of the
// process that made it, which distinguishes a copy of an object from the object. An object with a
// mark is used and destroyed only in the process that made it: a copy may be locked for ever by a
// thread that the child does not have, and its pointers may not be mapped. So copies are left as
// they are; their memory goes with the child.
//
// A child made without the handlers of pthread_atfork (by _Fork(), or by a system call) is not
// distinguished from its parent.
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
