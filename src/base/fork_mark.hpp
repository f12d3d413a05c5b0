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
#include <memory>
#include <utility>

#include "base/leak_roots.hpp"

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

/// Deletes what this process made, and leaves a copy of what another one made.
class DeleteUnlessCopy {
 public:
  template <class T>
  void operator()(T* object) const {
    if (mark_.is_copy()) {
      ignore_leak(object);
    } else {
      delete object;
    }
  }

 private:
  ForkMark mark_;
};

/// As std::make_shared, of what is left as it is in a child.
template <class T, class... Arguments>
std::shared_ptr<T> make_shared_until_fork(Arguments&&... arguments) {
  return std::shared_ptr<T>(new T(std::forward<Arguments>(arguments)...), DeleteUnlessCopy());
}

/// One T for each process, made when it is first asked for, and never destroyed: so a child does
/// not find it locked by a thread that it does not have, and calls of static destructors find it.
/// Requires: static storage, constant initialisation.
template <class T>
class PerProcess {
 public:
  T& get() {
    Made* now = now_.load(std::memory_order_acquire);
    if (now != nullptr && !now->mark.is_copy()) [[likely]]
      return now->value;
    auto made = std::make_unique<Made>();
    made->before = now;  // so that it stays reachable
    if (now_.compare_exchange_strong(now, made.get(), std::memory_order_acq_rel)) {
      return made.release()->value;
    }
    return now->value;
  }

 private:
  struct Made {
    ForkMark mark;
    T value;
    Made* before = nullptr;
  };
  std::atomic<Made*> now_{nullptr};
};

}  // namespace espalier::base
