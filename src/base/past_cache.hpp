// SPDX-License-Identifier: Apache-2.0
// Non-temporal stores to persistent memory: what was stored is durable once the fence behind it has
// completed; no line is left to be evicted later, in arbitrary order [RAMBDA §III-D].
//
// Thread: any, but for the same bytes.
#pragma once

#include <emmintrin.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.hpp"

namespace espalier::base {

/// Of a processor's cache, and what such a store should fill whole.
inline constexpr std::size_t kStoredLineBytes = 64;

/// Copies. Requires: all three are multiples of kStoredLineBytes.
inline void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) {
  ESPALIER_ASSERT(reinterpret_cast<std::uintptr_t>(to) % kStoredLineBytes == 0);
  ESPALIER_ASSERT(reinterpret_cast<std::uintptr_t>(from) % kStoredLineBytes == 0);
  ESPALIER_ASSERT(bytes % kStoredLineBytes == 0);
  for (std::size_t at = 0; at < bytes; at += sizeof(__m128i)) {
    const __m128i word = _mm_load_si128(reinterpret_cast<const __m128i*>(from + at));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), word);
  }
}

/// The same from any address to any other, where other threads may be reading: an aligned word of 8
/// bytes is seen whole. Bytes at the ends that fill no word are stored, and their lines written
/// back.
void store_past_cache(std::byte* to, const std::byte* from, std::size_t bytes);
/// Begins to write back all lines of these bytes, which stay in the cache where the processor can
/// (CLWB). Cost: a line each.
void write_back(std::span<const std::byte> bytes);

/// Returns when what this thread has copied so, or begun to write back, has left the processor.
inline void fence_past_cache() { _mm_sfence(); }

}  // namespace espalier::base
