// SPDX-License-Identifier: Apache-2.0
// Splits a READ or WRITE into the pieces in which its bytes are copied at the target, with times.
//
// Lines are counted by the region's addresses, whose first is a multiple of a page: where the
// memory itself lies depends on the run, and must not decide anything. Memory that is aligned to 64
// bytes has its lines there too, and no aligned word of 8 bytes is ever in two pieces if the memory
// is aligned to 8.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "fabric/sim/faults.hpp"

namespace espalier::fabric::sim {

inline constexpr std::uint32_t kLineBytes = 64;

/// Bytes that are copied at one moment.
struct Piece {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint64_t after_ns = 0;  // from the beginning of the request
};

/// The pieces in the order of their times: all bytes in one piece, or line by line. No bytes make
/// no pieces.
[[nodiscard]] std::vector<Piece> cut_in_pieces(std::uint64_t remote, std::uint32_t bytes,
                                               const Faults& faults, base::Random& random);

}  // namespace espalier::fabric::sim
