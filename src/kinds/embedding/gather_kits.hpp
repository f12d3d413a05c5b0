// SPDX-License-Identifier: Apache-2.0
// The gather kernels of each instruction set, behind gather_kit() (gather.hpp).
#pragma once

#include <limits>

#include "base/barrier.hpp"
#include "kinds/embedding/gather.hpp"

#if defined(__x86_64__)
#define ESPALIER_HAVE_X86_GATHER 1
#endif

namespace espalier::embedding {

/// The initial value of a bag's row, before its first row is folded in: for max and min one that
/// any number replaces.
[[nodiscard]] constexpr float first_of(Fold fold) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (fold == Fold::max) return -kInfinity;
  return fold == Fold::min ? kInfinity : 0.0F;
}

[[nodiscard]] const GatherKit& scalar_gather();
#if defined(ESPALIER_HAVE_X86_GATHER)
/// Requires: AVX2, FMA, F16C.
[[nodiscard]] const GatherKit& avx2_gather();
/// Requires: besides, AVX-512 F, BW, VL.
[[nodiscard]] const GatherKit& avx512_gather();
#endif

}  // namespace espalier::embedding
