// SPDX-License-Identifier: Apache-2.0
// Memory of tables that are searched at random, on huge pages where the system has some: a search
// waits for fewer translations of addresses.
//
// Thread: any.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace espalier::dataplane {

template <class T>
class HugeAllocator {
 public:
  using value_type = T;
  HugeAllocator() = default;
  /// Containers make allocators of each other.
  template <class U>
  HugeAllocator(const HugeAllocator<U>&) {}

  [[nodiscard]] T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (!is_huge(bytes)) {
      return static_cast<T*>(::operator new(bytes, std::align_val_t(alignof(T))));
    }
    const std::size_t whole = (bytes + kPageBytes - 1) & ~(kPageBytes - 1);
    void* const at = std::aligned_alloc(kPageBytes, whole);
    if (at == nullptr) throw std::bad_alloc();
    // Without huge pages there are small ones.
    static_cast<void>(::madvise(at, whole, MADV_HUGEPAGE));
    return static_cast<T*>(at);
  }
  void deallocate(T* at, std::size_t count) {
    if (is_huge(count * sizeof(T))) return std::free(at);
    ::operator delete(at, std::align_val_t(alignof(T)));
  }
  friend bool operator==(const HugeAllocator&, const HugeAllocator&) { return true; }

 private:
  static constexpr std::size_t kPageBytes = std::size_t{2} << 20;
  /// Less would leave more than half of a page unused.
  static bool is_huge(std::size_t bytes) { return bytes >= kPageBytes / 2; }
};

}  // namespace espalier::dataplane
