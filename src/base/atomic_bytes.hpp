// SPDX-License-Identifier: Apache-2.0
// Atomic access to fields inside raw memory that other threads, processes or machines share.
//
// Formats have no atomic members (DESIGN §6), so each access names its order here. `at` must be
// aligned to the size of T.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace espalier::base {

template <class T>
[[nodiscard]] inline T load_shared(const std::byte* at,
                                   std::memory_order order = std::memory_order_relaxed) {
  static_assert(std::is_trivially_copyable_v<T>);
  // atomic_ref wants a mutable object; a load does not write.
  auto* mutable_at = const_cast<std::byte*>(at);
  return std::atomic_ref<T>(*reinterpret_cast<T*>(mutable_at)).load(order);
}

template <class T>
inline void store_shared(std::byte* at, T value,
                         std::memory_order order = std::memory_order_relaxed) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::atomic_ref<T>(*reinterpret_cast<T*>(at)).store(value, order);
}

template <class T>
[[nodiscard]] inline std::atomic_ref<T> shared(std::byte* at) {
  return std::atomic_ref<T>(*reinterpret_cast<T*>(at));
}

/// Copies words to memory that other threads may be reading. `to` is aligned to 8, and so is
/// `bytes`.
inline void copy_shared(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, from + i, sizeof word);
    store_shared(to + i, word);
  }
}

/// Reads bytes that no thread writes concurrently, of any alignment.
template <class T>
[[nodiscard]] inline T load_plain(const std::byte* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T>
inline void store_plain(std::byte* at, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(at, &value, sizeof(T));
}

}  // namespace espalier::base
