// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/model/dense.hpp"

#include <algorithm>
#include <array>

#include "base/barrier.hpp"
#include "kinds/embedding/model/open_blas.hpp"

namespace espalier::embedding {
namespace {

// Four rows and a panel at a time, which the compiler may keep in registers.
template <std::uint32_t kRows>
void block_of_rows(const DenseWork& work, std::uint32_t row, std::uint32_t output) {
  std::array<std::array<float, kPanelOutputs>, kRows> sums;
  for (auto& of_row : sums) std::copy_n(work.biases + output, kPanelOutputs, of_row.begin());
  const float* weights = work.weights + std::size_t{output} * work.input_count;
  const float* const inputs = work.inputs + row * work.input_stride;
  for (std::uint32_t i = 0; i < work.input_count; ++i, weights += kPanelOutputs) {
    for (std::uint32_t r = 0; r < kRows; ++r) {
      const float input = inputs[r * work.input_stride + i];
      for (std::uint32_t o = 0; o < kPanelOutputs; ++o) sums[r][o] += input * weights[o];
    }
  }
  for (std::uint32_t r = 0; r < kRows; ++r) {
    float* const to = work.outputs + (row + r) * work.output_stride + output;
    for (std::uint32_t o = 0; o < kPanelOutputs; ++o) {
      to[o] = work.rectify && sums[r][o] < 0 ? 0.0F : sums[r][o];
    }
  }
}

void layer_scalar(const DenseWork& work) {
  for (std::uint32_t output = 0; output < work.output_count; output += kPanelOutputs) {
    std::uint32_t row = 0;
    for (; row + 4 <= work.rows; row += 4) block_of_rows<4>(work, row, output);
    for (; row < work.rows; ++row) block_of_rows<1>(work, row, output);
  }
}

const OpenBlas& open_blas() {
  static const OpenBlas* const loaded = new OpenBlas("libopenblas.so.0");  // stays loaded
  return *loaded;
}

void layer_blas(const DenseWork& work) { open_blas().layer(work); }

}  // namespace

const DenseKit& scalar_dense() {
  static constexpr DenseKit kKit{"scalar", true, &layer_scalar};
  return kKit;
}

const DenseKit* blas_dense() {
  static constexpr DenseKit kKit{"openblas", false, &layer_blas};
  return open_blas().usable() ? &kKit : nullptr;
}

const DenseKit& plain_dense(base::Isa isa) {
#if defined(__x86_64__)
  static const bool has_fma = __builtin_cpu_supports("fma");
  if (!base::kThreadSanitizer && has_fma && isa != base::Isa::scalar) {
    return isa == base::Isa::avx512 ? avx512_dense() : avx2_dense();
  }
#endif
  static_cast<void>(isa);
  return scalar_dense();
}

const DenseKit& dense_kit() {
  const DenseKit* const blas = base::kThreadSanitizer ? nullptr : blas_dense();
  return blas != nullptr ? *blas : plain_dense(base::isa());
}

}  // namespace espalier::embedding
