// SPDX-License-Identifier: Apache-2.0
// Copies between plain memory and memory that other threads and processes change concurrently.
//
// The shared side is touched in aligned words of 8 bytes, and in bytes at ragged ends, each by one
// relaxed atomic access: so there is no data race, and no such word is torn.
//
// The compiler may not join atomic accesses into wider ones, which costs half the speed from the
// cache. On x86-64 the middle is therefore copied by movdqa, in assembly that the compiler neither
// repeats nor splits. The processors' manuals promise that an aligned access of 16 bytes is one
// access where there is AVX, and all make it of whole halves of 8 bytes elsewhere. Sanitizers do
// not see into assembly, so under them, and on other processors, it is words.
//
// Loads behind a copy out of shared memory are ordered after it: a READ after another, and the
// check of a key or a generation that validates the copy.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/atomic_bytes.hpp"
#include "base/barrier.hpp"

namespace espalier::fabric {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ESPALIER_SHARED_BY_WORDS 1
#endif
#endif
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(ESPALIER_SHARED_BY_WORDS)
#define ESPALIER_SHARED_BY_VECTORS 1
#endif

namespace detail {

inline constexpr std::size_t kWord = sizeof(std::uint64_t);
inline constexpr std::size_t kVector = 16;
inline constexpr std::size_t kBlock = 64;

struct FromShared {
  static const std::byte* shared(std::byte*, const std::byte* from) { return from; }
  template <class T>
  static void move(std::byte* to, const std::byte* from) {
    // The sanitizer of threads sees no order in a relaxed load and the fence of end().
    constexpr auto kOrder =
        base::kThreadSanitizer ? std::memory_order_acquire : std::memory_order_relaxed;
    base::store_plain(to, base::load_shared<T>(from, kOrder));
  }
  static void end() {
#if !defined(__SANITIZE_THREAD__)
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
  }
#if defined(ESPALIER_SHARED_BY_VECTORS)
  static void block(std::byte* to, const std::byte* from) {
    asm volatile(
        "movdqa 0(%1), %%xmm0\n\tmovdqa 16(%1), %%xmm1\n\t"
        "movdqa 32(%1), %%xmm2\n\tmovdqa 48(%1), %%xmm3\n\t"
        "movdqu %%xmm0, 0(%0)\n\tmovdqu %%xmm1, 16(%0)\n\t"
        "movdqu %%xmm2, 32(%0)\n\tmovdqu %%xmm3, 48(%0)"
        :
        : "r"(to), "r"(from)
        : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
  }
#endif
};

struct ToShared {
  static const std::byte* shared(std::byte* to, const std::byte*) { return to; }
  template <class T>
  static void move(std::byte* to, const std::byte* from) {
    base::store_shared(to, base::load_plain<T>(from));
  }
#if defined(ESPALIER_SHARED_BY_VECTORS)
  static void block(std::byte* to, const std::byte* from) {
    asm volatile(
        "movdqu 0(%1), %%xmm0\n\tmovdqu 16(%1), %%xmm1\n\t"
        "movdqu 32(%1), %%xmm2\n\tmovdqu 48(%1), %%xmm3\n\t"
        "movdqa %%xmm0, 0(%0)\n\tmovdqa %%xmm1, 16(%0)\n\t"
        "movdqa %%xmm2, 32(%0)\n\tmovdqa %%xmm3, 48(%0)"
        :
        : "r"(to), "r"(from)
        : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
  }
#endif
};

[[nodiscard]] inline std::size_t behind(const std::byte* at, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(at) & (alignment - 1);
}

/// The form that everything can: words, and bytes at the ends. Way: which side is shared.
template <class Way>
inline void copy_by_words(std::byte* to, const std::byte* from, std::size_t bytes) {
  while (bytes != 0 && behind(Way::shared(to, from), kWord) != 0) {
    Way::template move<std::byte>(to++, from++);
    --bytes;
  }
  for (; bytes >= kBlock; bytes -= kBlock, to += kBlock, from += kBlock) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kBlock; i += kWord) {
      Way::template move<std::uint64_t>(to + i, from + i);
    }
  }
  for (; bytes >= kWord; bytes -= kWord, to += kWord, from += kWord) {
    Way::template move<std::uint64_t>(to, from);
  }
  while (bytes-- != 0) Way::template move<std::byte>(to++, from++);
}

template <class Way>
inline void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(ESPALIER_SHARED_BY_VECTORS)
  if (bytes >= kBlock) {
    if (const std::size_t over = behind(Way::shared(to, from), kVector); over != 0) {
      const std::size_t head = kVector - over;
      copy_by_words<Way>(to, from, head);
      to += head;
      from += head;
      bytes -= head;
    }
    for (; bytes >= kBlock; bytes -= kBlock, to += kBlock, from += kBlock) Way::block(to, from);
    if (bytes == 0) return;
  }
#endif
  copy_by_words<Way>(to, from, bytes);
}

}  // namespace detail

/// Copies out of shared memory, from any address to any other.
void copy_from_shared(std::byte* to, const std::byte* from, std::size_t bytes);
/// Copies into shared memory, from any address to any other.
void copy_to_shared(std::byte* to, const std::byte* from, std::size_t bytes);

/// The same as copy_from_shared(), without a call for one word or one line.
inline void copy_few_from_shared(std::byte* to, const std::byte* from, std::size_t bytes) {
  using detail::FromShared;
  if (bytes == detail::kWord && detail::behind(from, detail::kWord) == 0) {
    FromShared::move<std::uint64_t>(to, from);
    return FromShared::end();
  }
#if defined(ESPALIER_SHARED_BY_VECTORS)
  if (bytes == detail::kBlock && detail::behind(from, detail::kVector) == 0) {
    FromShared::block(to, from);
    return FromShared::end();
  }
#endif
  copy_from_shared(to, from, bytes);
}

}  // namespace espalier::fabric
