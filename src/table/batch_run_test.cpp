// SPDX-License-Identifier: Apache-2.0
// The batch executor against the reference, over pipelines and rows by chance.
#include "table/batch_run.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/cpu.hpp"
#include "base/random.hpp"
#include "table/testing/run_checks.hpp"

namespace espalier::table {
namespace {

/// Fewer where ESPALIER_FEW_SEEDS says so; then what seldom happens need not have happened.
bool takes_few() { return std::getenv("ESPALIER_FEW_SEEDS") != nullptr; }
int rounds(int usually) { return takes_few() ? usually / 10 : usually; }

TEST(BatchRun, AgreesWithTheReference) {
  base::Random random(base::seed_from_environment(1));
  SeenInRuns seen;
  ASSERT_EQ(difference_in_rounds(random, rounds(300), seen), "");
  if (takes_few()) return;
  EXPECT_GT(seen.errors, 20);
  EXPECT_GT(seen.stalls, 1000);
  EXPECT_GT(seen.groups, 100);
  EXPECT_GT(seen.rows, 500);
  EXPECT_GT(seen.smart, 100);
}

TEST(BatchRun, AgreesInBoundedMemory) {
  base::Random random(base::seed_from_environment(2));
  SeenInRuns seen;
  ASSERT_EQ(difference_in_little_memory(random, rounds(60), seen), "");
  if (takes_few()) return;
  EXPECT_GT(seen.flushes, 10);
  EXPECT_GT(seen.unsure, 2);
}

TEST(BatchRun, AgreesOnWholeRowsInEveryForm) {
  base::Random random(base::seed_from_environment(3));
  SeenInRuns seen;
  ASSERT_EQ(difference_in_whole_rows(random, rounds(60), seen), "");
  if (takes_few()) return;
  EXPECT_GT(seen.rows, 100);
  EXPECT_GT(seen.scalar, 100);
  const bool has_vectors = base::isa() == base::Isa::avx512;
  EXPECT_GT(seen.avx512, has_vectors ? 100 : -1);
}

}  // namespace
}  // namespace espalier::table
