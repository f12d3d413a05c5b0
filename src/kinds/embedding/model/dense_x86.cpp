// SPDX-License-Identifier: Apache-2.0
// Kernels of layers for AVX2 and AVX-512: some rows and some panels of outputs at a time, whose
// sums stay in registers for all inputs.
#include "kinds/embedding/model/dense.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#define ESPALIER_DENSE_AVX2 __attribute__((target("avx2,fma"), always_inline)) inline
#define ESPALIER_DENSE_AVX512 __attribute__((target("avx512f,avx2,fma"), always_inline)) inline

namespace espalier::embedding {
namespace {

template <std::uint32_t kRows>
ESPALIER_DENSE_AVX2 void block_avx2(const DenseWork& work, std::uint32_t row,
                                    std::uint32_t output) {
  __m256 sums[kRows][2];
  for (std::uint32_t r = 0; r < kRows; ++r) {
    sums[r][0] = _mm256_loadu_ps(work.biases + output);
    sums[r][1] = _mm256_loadu_ps(work.biases + output + 8);
  }
  const float* weights = work.weights + std::size_t{output} * work.input_count;
  const float* const inputs = work.inputs + row * work.input_stride;
  for (std::uint32_t i = 0; i < work.input_count; ++i, weights += kPanelOutputs) {
    const __m256 low = _mm256_loadu_ps(weights);
    const __m256 high = _mm256_loadu_ps(weights + 8);
    for (std::uint32_t r = 0; r < kRows; ++r) {
      const __m256 input = _mm256_set1_ps(inputs[r * work.input_stride + i]);
      sums[r][0] = _mm256_fmadd_ps(input, low, sums[r][0]);
      sums[r][1] = _mm256_fmadd_ps(input, high, sums[r][1]);
    }
  }
  const __m256 zero = _mm256_setzero_ps();
  for (std::uint32_t r = 0; r < kRows; ++r) {
    float* const to = work.outputs + (row + r) * work.output_stride + output;
    // If one is a NaN, max returns the second operand: it stays a NaN.
    _mm256_storeu_ps(to, work.rectify ? _mm256_max_ps(zero, sums[r][0]) : sums[r][0]);
    _mm256_storeu_ps(to + 8, work.rectify ? _mm256_max_ps(zero, sums[r][1]) : sums[r][1]);
  }
}

__attribute__((target("avx2,fma"))) void layer_avx2(const DenseWork& work) {
  for (std::uint32_t output = 0; output < work.output_count; output += kPanelOutputs) {
    std::uint32_t row = 0;
    for (; row + 6 <= work.rows; row += 6) block_avx2<6>(work, row, output);
    for (; row + 2 <= work.rows; row += 2) block_avx2<2>(work, row, output);
    for (; row < work.rows; ++row) block_avx2<1>(work, row, output);
  }
}

// g++ 12 warns about the form of max without a mask.
constexpr __mmask16 kAllLanes = 0xFFFF;

template <std::uint32_t kRows, std::uint32_t kPanels>
ESPALIER_DENSE_AVX512 void block_avx512(const DenseWork& work, std::uint32_t row,
                                        std::uint32_t output) {
  __m512 sums[kRows][kPanels];
  for (std::uint32_t r = 0; r < kRows; ++r) {
    for (std::uint32_t p = 0; p < kPanels; ++p) {
      sums[r][p] = _mm512_loadu_ps(work.biases + output + p * kPanelOutputs);
    }
  }
  const std::size_t panel = std::size_t{kPanelOutputs} * work.input_count;
  const float* weights = work.weights + std::size_t{output} * work.input_count;
  const float* const inputs = work.inputs + row * work.input_stride;
  for (std::uint32_t i = 0; i < work.input_count; ++i, weights += kPanelOutputs) {
    __m512 of_panel[kPanels];
    for (std::uint32_t p = 0; p < kPanels; ++p) of_panel[p] = _mm512_loadu_ps(weights + p * panel);
    for (std::uint32_t r = 0; r < kRows; ++r) {
      const __m512 input = _mm512_set1_ps(inputs[r * work.input_stride + i]);
      for (std::uint32_t p = 0; p < kPanels; ++p) {
        sums[r][p] = _mm512_fmadd_ps(input, of_panel[p], sums[r][p]);
      }
    }
  }
  const __m512 zero = _mm512_setzero_ps();
  for (std::uint32_t r = 0; r < kRows; ++r) {
    float* const to = work.outputs + (row + r) * work.output_stride + output;
    for (std::uint32_t p = 0; p < kPanels; ++p) {
      _mm512_storeu_ps(
          to + p * kPanelOutputs,
          work.rectify ? _mm512_maskz_max_ps(kAllLanes, zero, sums[r][p]) : sums[r][p]);
    }
  }
}

template <std::uint32_t kPanels>
ESPALIER_DENSE_AVX512 void rows_avx512(const DenseWork& work, std::uint32_t output) {
  std::uint32_t row = 0;
  for (; row + 8 <= work.rows; row += 8) block_avx512<8, kPanels>(work, row, output);
  for (; row + 2 <= work.rows; row += 2) block_avx512<2, kPanels>(work, row, output);
  for (; row < work.rows; ++row) block_avx512<1, kPanels>(work, row, output);
}

__attribute__((target("avx512f,avx2,fma"))) void layer_avx512(const DenseWork& work) {
  const std::uint32_t outputs = whole_panels(work.output_count);
  std::uint32_t output = 0;
  for (; output + 2 * kPanelOutputs <= outputs; output += 2 * kPanelOutputs) {
    rows_avx512<2>(work, output);
  }
  if (output < outputs) rows_avx512<1>(work, output);
}

}  // namespace

const DenseKit& avx2_dense() {
  static constexpr DenseKit kKit{"avx2", true, &layer_avx2};
  return kKit;
}

const DenseKit& avx512_dense() {
  static constexpr DenseKit kKit{"avx512", true, &layer_avx512};
  return kKit;
}

}  // namespace espalier::embedding
#endif
