// SPDX-License-Identifier: Apache-2.0
#include "base/fork_mark.hpp"

#include <pthread.h>

#include <cstdlib>

namespace espalier::base {

constinit std::atomic<std::uint32_t> detail::fork_generation{0};

namespace {

void raise_generation() { detail::fork_generation.fetch_add(1, std::memory_order_relaxed); }

// Before any static constructor could make something that has a mark. A function-local static would
// be initialised later, and could be in the middle of that when another thread forks.
[[gnu::constructor(101)]] void watch_forks() {
  // Without the handler a child would write into what is its parent's.
  if (::pthread_atfork(nullptr, nullptr, raise_generation) != 0) std::abort();
}

}  // namespace
}  // namespace espalier::base
