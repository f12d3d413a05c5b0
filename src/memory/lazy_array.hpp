// SPDX-License-Identifier: Apache-2.0
// A long zero-initialised array of which little is ever touched: pages are allocated on first use.
//
// Thread: as its elements.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/assert.hpp"
#include "base/leak_roots.hpp"

namespace espalier::memory {

/// Requires of T: all zeros is a valid value.
template <class T>
class LazyArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  explicit LazyArray(std::uint64_t count) : bytes_(count * sizeof(T)) {
    void* const at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ESPALIER_ASSERT(at != MAP_FAILED);  // addresses, and few: a 4096th of what they describe
    elements_ = static_cast<T*>(at);
    base::register_leak_roots(at, bytes_);
  }
  ~LazyArray() {
    base::unregister_leak_roots(elements_, bytes_);
    ::munmap(elements_, bytes_);
  }
  LazyArray(const LazyArray&) = delete;
  LazyArray& operator=(const LazyArray&) = delete;

  T& operator[](std::uint64_t i) { return elements_[i]; }
  const T& operator[](std::uint64_t i) const { return elements_[i]; }
  [[nodiscard]] std::uint64_t size() const { return bytes_ / sizeof(T); }

 private:
  T* elements_ = nullptr;
  std::size_t bytes_;
};

}  // namespace espalier::memory
