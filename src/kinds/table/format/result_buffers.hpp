// SPDX-License-Identifier: Apache-2.0
// Memory that a client offers for results, and a node's messages about it.
// docs/formats/result_buffers.md draws it.
#pragma once

#include <cstdint>
#include <type_traits>

namespace espalier::wire {

/// The argument of table_query. A flag: rows go into the buffers offered for its response ring. The
/// bits above it: time limit of the run in milliseconds from now; 0: none.
inline constexpr std::uint32_t kQueryIntoBuffers = 1;
inline constexpr unsigned kQueryTimeShift = 1;
inline constexpr std::uint32_t kQueryTimeMaxMs = (std::uint32_t{1} << 31) - 1;

/// Buffers of one response ring, and how long each may be.
inline constexpr std::uint32_t kResultBuffersMax = 16;
inline constexpr std::uint32_t kResultBufferBytesMin = std::uint32_t{64} << 10;
inline constexpr std::uint32_t kResultBufferBytesMax = std::uint32_t{4} << 20;

/// The payload of result_open: consecutive buffers in a region of the client.
struct ResultOffer {
  std::uint64_t base;          // the address of the first byte; a multiple of 8
  std::uint32_t buffer_bytes;  // of each; a multiple of 8
  std::uint32_t buffers;
  std::uint32_t key;
  std::uint32_t reserved;  // 0
};
static_assert(sizeof(ResultOffer) == 24 && std::has_unique_object_representations_v<ResultOffer>);

/// A chunk of kind `placed`: whole rows that lie in a buffer.
struct ResultPlace {
  std::uint32_t buffer;
  std::uint32_t offset;  // in it; a multiple of 8
  std::uint32_t bytes;
  std::uint32_t flags;  // kBufferFull
};
static_assert(sizeof(ResultPlace) == 16 && std::has_unique_object_representations_v<ResultPlace>);
/// The node writes no more into this buffer until the client returns it.
inline constexpr std::uint32_t kBufferFull = 1;

}  // namespace espalier::wire
