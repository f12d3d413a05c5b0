// SPDX-License-Identifier: Apache-2.0
// Counters that one thread writes and any thread reads: adding to them takes no atomic addition.
#pragma once

#include <atomic>
#include <type_traits>

namespace espalier::base {

/// Requires: no other thread writes the counter concurrently.
template <class T>
inline void count_own(std::atomic<T>& counter, std::type_identity_t<T> amount = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

}  // namespace espalier::base
