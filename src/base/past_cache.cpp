// SPDX-License-Identifier: Apache-2.0
#include "base/past_cache.hpp"

#include <cpuid.h>

#include <algorithm>
#include <atomic>

#include "base/atomic_bytes.hpp"

namespace espalier::base {
namespace {

constexpr std::size_t kStoredWord = 8;
constexpr std::size_t kStoredVector = sizeof(__m128i);

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ESPALIER_SANITIZED_STORES 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ESPALIER_SANITIZED_STORES 1
#endif

std::size_t bytes_behind(const std::byte* at, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(at) % alignment;
}

void store_word(std::byte* to, const std::byte* from) {
#if defined(ESPALIER_SANITIZED_STORES)
  // They do not look at stores past the cache.
  store_shared(to, load_plain<std::uint64_t>(from));
#else
  _mm_stream_si64(reinterpret_cast<long long*>(to), load_plain<long long>(from));
#endif
}

// The words of a copy to an aligned word, whole ones.
void store_words(std::byte* to, const std::byte* from, std::size_t bytes) {
  const auto step = [&](std::size_t stored) {
    to += stored;
    from += stored;
    bytes -= stored;
  };
#if !defined(ESPALIER_SANITIZED_STORES)
  if (bytes >= kStoredWord && bytes_behind(to, kStoredVector) != 0) {
    store_word(to, from);
    step(kStoredWord);
  }
  for (; bytes >= kStoredVector; step(kStoredVector)) {
    const __m128i word = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), word);
  }
#endif
  for (; bytes >= kStoredWord; step(kStoredWord)) store_word(to, from);
}

void store_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i != bytes; ++i) store_shared(to + i, from[i]);
}

bool has_clwb() {
  constexpr unsigned kClwbBit = 1U << 24;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kClwbBit) != 0;
}

void write_back_line(const std::byte* line) {
  // Older processors lose the line as they write it back.
  static const bool keeps_lines = has_clwb();
  if (keeps_lines) {
    asm volatile("clwb %0" : : "m"(*line) : "memory");
  } else {
    asm volatile("clflush %0" : : "m"(*line) : "memory");
  }
}

}  // namespace

void store_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t over = bytes_behind(to, kStoredWord);
  const std::size_t head = over == 0 ? 0 : std::min(bytes, kStoredWord - over);
  const std::size_t words = (bytes - head) / kStoredWord * kStoredWord;
  const std::size_t tail = bytes - head - words;
  store_bytes(to, from, head);
  store_words(to + head, from + head, words);
  store_bytes(to + head + words, from + head + words, tail);
  write_back({to, head});
  write_back({to + head + words, tail});
}

void write_back(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::byte* const end = bytes.data() + bytes.size();
  for (const std::byte* line = bytes.data() - bytes_behind(bytes.data(), kStoredLineBytes);
       line < end; line += kStoredLineBytes) {
    write_back_line(line);
  }
}

}  // namespace espalier::base
