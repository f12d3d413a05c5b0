// SPDX-License-Identifier: Apache-2.0
// Tells LeakSanitizer of mapped memory that holds pointers into the heap. It scans the heap, stacks
// and globals, but no mapping of our own: without this, what only such a mapping points to counts
// as leaked. And of what is left on purpose. Without the sanitizer these do nothing.
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

/// Has what lies at `at` scanned for pointers, until it is unregistered with the same arguments,
/// which must happen before the memory is unmapped.
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

/// Has an object of the heap, and all that it leads to, not counted as leaked.
inline void ignore_leak([[maybe_unused]] const void* object) {
#ifdef ESPALIER_LEAK_SANITIZER
  __lsan_ignore_object(object);
#endif
}

}  // namespace espalier::base
