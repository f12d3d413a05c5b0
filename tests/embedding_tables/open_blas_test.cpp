// SPDX-License-Identifier: Apache-2.0
// OpenBLAS as ranking models load it, by a stand-in that is there on every machine.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/loaded_library.hpp"
#include "kinds/embedding/model/dense.hpp"
#include "kinds/embedding/model/open_blas.hpp"
#include "kinds/embedding/testing/dense_checks.hpp"

namespace espalier::test {
namespace {

using embedding::DenseKit;
using embedding::DenseWork;
using embedding::OpenBlas;

const OpenBlas& stand_in() {
  static const OpenBlas blas(ESPALIER_BLAS_PTHREAD);
  return blas;
}

TEST(OpenBlas, IsUsedOnOneThread) {
  ASSERT_TRUE(stand_in().usable());
  int (*threads)() = nullptr;
  ASSERT_TRUE(base::LoadedLibrary(ESPALIER_BLAS_PTHREAD).find("openblas_get_num_threads", threads));
  EXPECT_EQ(threads(), 1);
}

TEST(OpenBlas, LayersAreNearThoseOfDoubles) {
  static constexpr DenseKit kKit{"stand-in", false,
                                 [](const DenseWork& work) { stand_in().layer(work); }};
  ASSERT_TRUE(stand_in().usable());
  embedding::expect_layers_near_doubles(kKit);
}

TEST(OpenBlas, ThatIsBuiltForOpenMpIsNotUsed) {
  EXPECT_TRUE(base::LoadedLibrary(ESPALIER_BLAS_OPENMP));
  EXPECT_FALSE(OpenBlas(ESPALIER_BLAS_OPENMP).usable());
}

TEST(OpenBlas, ThatIsMissingIsNotUsed) {
  EXPECT_FALSE(OpenBlas("libespalier_has_no_such_library.so").usable());
}

/// Whether a model finds OpenBLAS by its name in a process that has one; ends the process with 0
/// or 1.
void end_with_blas(const char* library) {
  // Under this name the loader finds what is loaded already.
  const bool loaded = ::dlopen(library, RTLD_NOW | RTLD_LOCAL) != nullptr;
  const DenseKit* const blas = embedding::blas_dense();
  if (blas != nullptr) embedding::expect_layers_near_doubles(*blas);
  const bool used = blas != nullptr && !::testing::Test::HasFailure();
  std::_Exit(!loaded ? 2 : used ? 0 : 1);
}

TEST(OpenBlas, IsFoundByItsName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_with_blas(ESPALIER_BLAS_PTHREAD), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(end_with_blas(ESPALIER_BLAS_OPENMP), ::testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace espalier::test
