// SPDX-License-Identifier: Apache-2.0
// Copying between a region, which others may read and write meanwhile, and memory of one's own.
//
// What is copied may be torn: part from before somebody's write, part from after. Only aligned
// words of 8 bytes are whole. Under ThreadSanitizer each access is a relaxed atomic one, of 8 bytes
// where that is possible; elsewhere a vector copy does the same thing faster, kept from the
// compiler so that it can make nothing of the race. (On the processors that this runs on, the loads
// and stores that memcpy is made of never tear an aligned word.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/atomic_bytes.hpp"
#include "base/barrier.hpp"

namespace espalier::fabric {

namespace detail {
/// Calls word(offset) or byte(offset) for all bytes, words where `region` is aligned.
template <class Word, class Byte>
inline void each_part(const std::byte* region, std::size_t bytes, const Word& word,
                      const Byte& byte) {
  std::size_t at = 0;
  while (at < bytes) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(region + at) % sizeof(std::uint64_t) == 0;
    if (aligned && bytes - at >= sizeof(std::uint64_t)) {
      word(at);
      at += sizeof(std::uint64_t);
    } else {
      byte(at++);
    }
  }
}
}  // namespace detail

inline void copy_from_region(std::byte* to, const std::byte* region, std::size_t bytes) {
  if constexpr (base::kThreadSanitizer) {
    detail::each_part(
        region, bytes,
        [&](std::size_t at) {
          base::store_plain(to + at, base::load_shared<std::uint64_t>(region + at));
        },
        [&](std::size_t at) { to[at] = base::load_shared<std::byte>(region + at); });
  } else if (bytes != 0) {
    std::memcpy(to, region, bytes);
    asm volatile("" ::: "memory");
  }
}

inline void copy_to_region(std::byte* region, const std::byte* from, std::size_t bytes) {
  if constexpr (base::kThreadSanitizer) {
    detail::each_part(
        region, bytes,
        [&](std::size_t at) {
          base::store_shared(region + at, base::load_plain<std::uint64_t>(from + at));
        },
        [&](std::size_t at) { base::store_shared(region + at, from[at]); });
  } else if (bytes != 0) {
    asm volatile("" ::: "memory");
    std::memcpy(region, from, bytes);
  }
}

}  // namespace espalier::fabric
