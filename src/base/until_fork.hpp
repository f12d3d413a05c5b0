// SPDX-License-Identifier: Apache-2.0
// Objects that belong to the process that made them (fork_mark.hpp): what a child leaves as it is,
// and what each process makes for itself.
//
// Thread: any.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "base/fork_mark.hpp"
#include "base/leak_roots.hpp"

namespace espalier::base {

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
