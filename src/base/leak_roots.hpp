// SPDX-License-Identifier: Apache-2.0
// Registers mapped memory that holds pointers into the heap with LeakSanitizer, which scans the
// heap, stacks and globals but no mappings of our own: what only such a mapping points to would
// count as leaked. Also exempts deliberate leaks. Without the sanitizer these do nothing.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define ESPALIER_LEAK_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ESPALIER_LEAK_SANITIZER 1
#endif
#endif

#ifdef ESPALIER_LEAK_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace espalier::base {

/// Registers the memory at `at` as a root, until it is unregistered with the same arguments, which
/// must happen before the memory is unmapped.
inline void register_leak_roots([[maybe_unused]] const void* at,
                                [[maybe_unused]] std::size_t bytes) {
#ifdef ESPALIER_LEAK_SANITIZER
  __lsan_register_root_region(at, bytes);
#endif
}

inline void unregister_leak_roots([[maybe_unused]] const void* at,
                                  [[maybe_unused]] std::size_t bytes) {
#ifdef ESPALIER_LEAK_SANITIZER
  __lsan_unregister_root_region(at, bytes);
#endif
}

/// Exempts an object of the heap, and all that is reachable from it, from leak detection.
inline void ignore_leak([[maybe_unused]] const void* object) {
#ifdef ESPALIER_LEAK_SANITIZER
  __lsan_ignore_object(object);
#endif
}

}  // namespace espalier::base
