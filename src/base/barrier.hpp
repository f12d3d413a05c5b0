// SPDX-License-Identifier: Apache-2.0
// Memory barriers beyond what std::atomic offers.
//
// full_fence() and release_fence() are std::atomic_thread_fence, in a form that g++ also accepts
// under ThreadSanitizer (where it refuses the standard one). An asymmetric pair moves the cost of a
// full fence from a frequent side to a rare one: the rare side calls heavy_barrier(), which makes
// every running thread of every registered process pass a full barrier, and the frequent side needs
// only light_barrier(), which the processor does not see (membarrier(2); Linux 4.16 or newer).
#pragma once

#include <atomic>

namespace espalier::base {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#else
inline constexpr bool kThreadSanitizer = false;
#endif

/// Orders everything before it before everything after it, stores before loads too.
inline void full_fence() { __sync_synchronize(); }

/// Orders loads and stores before it before stores after it.
inline void release_fence() {
#if defined(__SANITIZE_THREAD__)
  full_fence();
#else
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

/// The frequent side of an asymmetric pair.
inline void light_barrier() { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// Prepares this process for asymmetric barriers; false: this system has none (or
/// ThreadSanitizer, which cannot see them, is watching). Repeating it is cheap.
[[nodiscard]] bool register_asymmetric_barriers();

/// The rare side of an asymmetric pair. Cost: some microseconds, and an interrupt on each core that
/// runs a registered process. Requires: register_asymmetric_barriers() returned true here.
void heavy_barrier();

/// The two sides of a pair that may be asymmetric. Both sides must agree on whether it is.
inline void frequent_barrier(bool asymmetric) {
  if (asymmetric) {
    light_barrier();
  } else {
    full_fence();
  }
}
inline void rare_barrier(bool asymmetric) {
  if (asymmetric) {
    heavy_barrier();
  } else {
    full_fence();
  }
}

}  // namespace espalier::base
