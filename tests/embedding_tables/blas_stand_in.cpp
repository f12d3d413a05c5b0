// SPDX-License-Identifier: Apache-2.0
// A library that has of OpenBLAS what ranking models call, so that tests load one on every machine.
// It is built twice: with threads of its own, and with those of OpenMP.
#include <limits>

extern "C" {

int openblas_get_parallel();
void openblas_set_num_threads(int threads);
int openblas_get_num_threads();
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);

}  // extern "C"

namespace {

int number_of_threads = 4;

}  // namespace

// 1: threads of its own. 2: those of OpenMP.
int openblas_get_parallel() { return ESPALIER_BLAS_PARALLEL; }

void openblas_set_num_threads(int threads) { number_of_threads = threads; }

int openblas_get_num_threads() { return number_of_threads; }

// The one form that is called: rows behind each other, the second matrix transposed.
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc) {
  const bool known = order == 101 && transpose_a == 111 && transpose_b == 112;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = known ? 0 : std::numeric_limits<float>::quiet_NaN();
      for (int l = 0; l < k; ++l) sum += a[i * lda + l] * b[j * ldb + l];
      c[i * ldc + j] = alpha * sum + beta * c[i * ldc + j];
    }
  }
}
