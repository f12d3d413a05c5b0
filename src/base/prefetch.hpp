// SPDX-License-Identifier: Apache-2.0
// Asking for cache lines before they are needed.
#pragma once

#include <cstddef>

namespace espalier::base {

inline constexpr std::size_t kLineBytes = 64;

/// Asks for the lines of [begin, end), and for those at begin, begin + 64 and begin + 128 in any
/// case: for these there is no branch to mispredict. The addresses need not be valid.
inline void prefetch(const std::byte* begin, const std::byte* end) {
  __builtin_prefetch(begin);
  __builtin_prefetch(begin + kLineBytes);
  __builtin_prefetch(begin + 2 * kLineBytes);
  for (begin += 3 * kLineBytes; begin < end; begin += kLineBytes) __builtin_prefetch(begin);
  // To g++ a prefetch is no effect: without this it drops calls of functions that only prefetch.
  asm volatile("");
}

/// Asks for one line. The address need not be valid.
inline void prefetch_line(const void* at) {
  __builtin_prefetch(at);
  asm volatile("");
}

/// Asks for one line with the right to write it, which another core may have. Where the processor
/// has no such request it does nothing. The address need not be valid.
inline void prefetch_to_write(const void* at) {
#if defined(__x86_64__)
  // The compiler makes it a request to read unless it may use what a processor of 2004 lacked.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 1);
  asm volatile("");
#endif
}

}  // namespace espalier::base
