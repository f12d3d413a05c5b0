// SPDX-License-Identifier: Apache-2.0
// Capacity reserved ahead: code that runs after a version was taken, or between a lock and its
// release, must not allocate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>

namespace espalier::base {

/// The slow path of try_reserve(), out of line.
template <class Container>
[[nodiscard, gnu::noinline]] bool try_grow(Container& container, std::size_t wanted) noexcept {
  try {
    container.reserve(std::max(wanted, 2 * container.size()));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// Makes room for `more` elements beside those that the container has, so that adding them
/// allocates nothing. False: the process has no memory for it, and nothing was changed.
/// Cost: where it grows, it grows at least twofold.
template <class Container>
[[nodiscard]] inline bool try_reserve(Container& container, std::size_t more) noexcept {
  const std::size_t wanted = container.size() + more;
  if (wanted <= container.capacity()) [[likely]]
    return true;
  return try_grow(container, wanted);
}

/// The same for callers that pass std::bad_alloc on.
template <class Container>
void reserve_more(Container& container, std::size_t more) {
  if (!try_reserve(container, more)) throw std::bad_alloc();
}

}  // namespace espalier::base
