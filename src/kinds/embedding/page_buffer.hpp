// SPDX-License-Identifier: Apache-2.0
// Buffers of an embedding table: initialised, made live, and filled while readers may look at them.
//
// Thread: a buffer that is not live belongs to one thread; words are stored whole.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic_bytes.hpp"
#include "kinds/embedding/format.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/size_class.hpp"

namespace espalier::embedding {

inline constexpr memory::SizeClass kPageClass = memory::relation_class_of(kPageBytes);
static_assert(memory::class_bytes(kPageClass) == kPageBytes);

[[nodiscard]] inline std::uint64_t ref_of(const memory::BufferPool& pool, std::uint64_t offset) {
  const auto generation =
      base::load_shared<std::uint32_t>(pool.at(offset) + offsetof(wire::BufferHeader, generation));
  return wire::Ref::make(offset, generation).bits;
}

/// Fills a buffer with zeros behind its header, and stores its owner. Remote readers may look at it
/// by a stale reference.
inline void begin_buffer(std::byte* buffer, std::size_t bytes, std::uint32_t table_id) {
  for (std::size_t at = sizeof(wire::BufferHeader); at < bytes; at += 8) {
    base::store_shared<std::uint64_t>(buffer + at, 0);
  }
  base::store_shared(buffer + offsetof(wire::BufferHeader, map_id), table_id);
  base::store_shared(buffer + offsetof(wire::BufferHeader, created), wire::kNoNode);
}

/// From now on the buffer is in use, with all its contents.
inline void set_live(std::byte* buffer) {
  base::store_shared(buffer + offsetof(wire::BufferHeader, superseded), wire::kLive,
                     std::memory_order_release);
}

/// Rows are read while they are written, so each word is stored whole.
inline void store_words(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes % 8 == 0 && reinterpret_cast<std::uintptr_t>(to) % 8 == 0) {
    return base::copy_shared(to, from, bytes);
  }
  for (std::size_t at = 0; at < bytes; at += 4) {
    base::store_shared(to + at, base::load_plain<std::uint32_t>(from + at));
  }
}

/// Loads each word whole.
inline void load_words(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 4) {
    base::store_plain(to + at, base::load_shared<std::uint32_t>(from + at));
  }
}

}  // namespace espalier::embedding
