// SPDX-License-Identifier: Apache-2.0
// One layer of a network for some rows: outputs are biases plus sums of products, in single
// precision; negative ones become zero if the layer is rectified.
//
// The plain kernels take weights in panels of 16 outputs: of each input the weights of the 16, one
// input behind the other, the last panel filled up with zeros. A sum of n products is within
// (n + 1) / 2^23 of the sum of their magnitudes, whatever the kernel. OpenBLAS (open_blas.hpp) is
// taken where it can be loaded and runs on one thread, and has weights of one output behind the
// other.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace espalier::embedding {

/// Outputs of a panel; rows of outputs have room for whole panels.
inline constexpr std::uint32_t kPanelOutputs = 16;

[[nodiscard]] constexpr std::uint32_t whole_panels(std::uint32_t outputs) {
  return (outputs + kPanelOutputs - 1) / kPanelOutputs * kPanelOutputs;
}

struct DenseWork {
  const float* inputs;  // rows of them
  std::size_t input_stride;
  const float* weights;
  const float* biases;  // whole panels of them
  float* outputs;
  std::size_t output_stride;  // whole panels, at least
  std::uint32_t rows;
  std::uint32_t input_count;
  std::uint32_t output_count;
  bool rectify;  // negative ones become 0
};

struct DenseKit {
  const char* name;
  bool panels;  // layout of weights; else output by output
  void (*layer)(const DenseWork&);
};

[[nodiscard]] const DenseKit& scalar_dense();
#if defined(__x86_64__)
/// Requires: AVX2 and FMA.
[[nodiscard]] const DenseKit& avx2_dense();
/// Requires: AVX-512 F.
[[nodiscard]] const DenseKit& avx512_dense();
#endif
/// Null: it is not there, or would use other threads. Cost: that of loading it, the first time.
[[nodiscard]] const DenseKit* blas_dense();

/// The plain kernel for an instruction set, or the best that this machine has below it.
[[nodiscard]] const DenseKit& plain_dense(base::Isa isa);
/// OpenBLAS if it can be used, else the plain one.
[[nodiscard]] const DenseKit& dense_kit();

}  // namespace espalier::embedding
