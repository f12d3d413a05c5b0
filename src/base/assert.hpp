// SPDX-License-Identifier: Apache-2.0
// Assertions: what the programmer guarantees. What the environment may do is an Error instead, and
// untrusted bytes are never asserted.
//
//   ESPALIER_ASSERT(used <= limit);        // cheap: stays on in every build
//   ESPALIER_DEBUG_ASSERT(is_sorted(...)); // costs more than the work it guards: debug builds only
//
// A failure prints the condition and where it stands to standard error, and aborts. Conditions must
// have no side effects: a debug assertion that is off compiles its condition but does not run it.
// Thread: safe.
#pragma once

#include <source_location>

namespace espalier::base {

/// Prints "file:line: function: assertion failed: text" and aborts. Allocates nothing.
[[noreturn]] void assertion_failed(
    const char* text, const std::source_location& where = std::source_location::current()) noexcept;

#if defined(ESPALIER_DEBUG_ASSERTIONS)
inline constexpr bool kDebugAssertions = true;
#else
inline constexpr bool kDebugAssertions = false;
#endif

}  // namespace espalier::base

#define ESPALIER_ASSERT(...)                                    \
  do {                                                          \
    if (!(__VA_ARGS__)) [[unlikely]]                            \
      ::espalier::base::assertion_failed(#__VA_ARGS__);         \
  } while (false)

#define ESPALIER_DEBUG_ASSERT(...)                              \
  do {                                                          \
    if constexpr (::espalier::base::kDebugAssertions) {         \
      ESPALIER_ASSERT(__VA_ARGS__);                             \
    }                                                           \
  } while (false)
