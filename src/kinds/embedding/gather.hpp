// SPDX-License-Identifier: Apache-2.0
// Gather kernels: fold rows at arbitrary addresses into one row of floats, which stays in
// registers. One kernel for each row type, fold and instruction set; the scalar form is the oracle,
// and all forms give the same bits, except for which NaN a result is:
//
//   add   acc + x, in the order of the ids        weighted   fma(weight, x, acc)
//   max   x where x > acc or x is a NaN           min        x where x < acc or x is a NaN
//   int8  x = fma(q, scale, bias)
//
// Rows are written while they are read, so the scalar form reads them as atomics. A vector load
// cannot be one in C++'s terms; its data is used only if the sequences of the rows' pages validate
// it (reducer.hpp).
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"
#include "espalier/embedding_types.hpp"

namespace espalier::embedding {

enum class Fold : std::uint8_t { add = 0, weighted = 1, max = 2, min = 3 };
inline constexpr std::uint32_t kFolds = 4;
inline constexpr std::uint32_t kTypes = 4;

/// Consecutive rows of one bag.
struct GatherPiece {
  const std::byte* const* rows;   // the address of each
  const float* weights;           // for `weighted` only: one for each
  const float* before;            // the fold of the rows before; null: the bag begins here
  float* after;                   // the fold with these rows: not the same memory
  const std::byte* const* later;  // rows to prefetch into the second-level cache, as many
  const std::byte* const* soon;   // rows to prefetch into the first, as many
  std::uint32_t count;            // of rows, not 0
  std::uint32_t dimension;        // a multiple of 8
  std::uint32_t row_bytes;
};

using GatherKernel = void (*)(const GatherPiece&);

struct GatherKit {
  const char* name;
  GatherKernel kernels[kTypes][kFolds];

  [[nodiscard]] GatherKernel kernel(EmbeddingType type, Fold fold) const {
    return kernels[static_cast<std::size_t>(type) - 1][static_cast<std::size_t>(fold)];
  }
};

/// The kernels for an instruction set, or the best that this machine has below it. Under
/// ThreadSanitizer always the scalar ones. Cost: a load.
[[nodiscard]] const GatherKit& gather_kit(base::Isa isa);

/// Prefetches all lines of a row into the second-level cache.
inline void prefetch_later(const std::byte* row, std::uint32_t row_bytes) {
  for (std::uint32_t at = 0; at < row_bytes; at += 64) __builtin_prefetch(row + at, 0, 2);
  if (row_bytes % 64 != 0) __builtin_prefetch(row + row_bytes - 1, 0, 2);
}
/// The same, into the first.
inline void prefetch_soon(const std::byte* row, std::uint32_t row_bytes) {
  for (std::uint32_t at = 0; at < row_bytes; at += 64) __builtin_prefetch(row + at, 0, 3);
  if (row_bytes % 64 != 0) __builtin_prefetch(row + row_bytes - 1, 0, 3);
}

}  // namespace espalier::embedding
