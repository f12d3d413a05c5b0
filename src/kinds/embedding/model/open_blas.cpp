// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/model/open_blas.hpp"

#include <algorithm>
#include <cstdint>

namespace espalier::embedding {
namespace {

// Of CBLAS.
constexpr int kRowMajor = 101;
constexpr int kAsItIs = 111;
constexpr int kTransposed = 112;
// Of OpenBLAS: what its threads are.
constexpr int kOpenMp = 2;

}  // namespace

OpenBlas::OpenBlas(const char* library) : library_(library) {
  int (*parallel)() = nullptr;
  void (*set_threads)(int) = nullptr;
  Multiply multiply = nullptr;
  const bool found = library_.find("openblas_get_parallel", parallel) &&
                     library_.find("openblas_set_num_threads", set_threads) &&
                     library_.find("cblas_sgemm", multiply);
  if (!found || parallel() == kOpenMp) return;
  set_threads(1);
  multiply_ = multiply;
}

void OpenBlas::layer(const DenseWork& work) const {
  for (std::uint32_t row = 0; row < work.rows; ++row) {
    std::copy_n(work.biases, work.output_count, work.outputs + row * work.output_stride);
  }
  const auto of = [](auto number) { return static_cast<int>(number); };
  multiply_(kRowMajor, kAsItIs, kTransposed, of(work.rows), of(work.output_count),
            of(work.input_count), 1.0F, work.inputs, of(work.input_stride), work.weights,
            of(work.input_count), 1.0F, work.outputs, of(work.output_stride));
  if (!work.rectify) return;
  for (std::uint32_t row = 0; row < work.rows; ++row) {
    float* const to = work.outputs + row * work.output_stride;
    for (std::uint32_t o = 0; o < work.output_count; ++o) to[o] = to[o] < 0 ? 0.0F : to[o];
  }
}

}  // namespace espalier::embedding
