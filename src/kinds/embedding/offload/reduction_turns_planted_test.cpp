// SPDX-License-Identifier: Apache-2.0
// Reductions that are summed when they are taken, while the rows of the others of their turn are
// not asked for yet, are noticed.
#include <gtest/gtest.h>

#include "kinds/embedding/offload/testing/turn_of_reductions.hpp"
#include "kinds/embedding/planted_embedding_bugs.hpp"

namespace espalier::offload {
namespace {

TEST(ReductionTurnsPlanted, RowsThatAreSummedWhenTheyAreTakenAreNoticed) {
  ASSERT_TRUE(rows_of_a_turn_are_asked_for_first());
  {
    const base::Planted planted(embedding::Bug::summed_when_taken);
    for (const std::uint32_t ids : {1u, 300u}) {
      TurnOfReductions alone;
      alone.reduce(ids);
      EXPECT_FALSE(alone.all_see_the_new_row()) << ids;
      TurnOfReductions tables;
      tables.reduce_twice(ids);
      EXPECT_FALSE(tables.all_see_the_new_row()) << ids;
    }
  }
  EXPECT_TRUE(rows_of_a_turn_are_asked_for_first());
}

}  // namespace
}  // namespace espalier::offload
