// SPDX-License-Identifier: Apache-2.0
// No forged nodes: bytes of a client's value that look like a leaf are never taken for one, neither
// by the host, to which a hint from outside names them, nor by a reader elsewhere that has kept a
// reference to what was there before (DESIGN §2.2 rule 4).
#include "tests/support/forged_leaf.hpp"

#include <gtest/gtest.h>

namespace espalier::test {
namespace {

TEST(ForgedLeaf, TheHostEntersAtNoBlockOfAValue) { EXPECT_EQ(enter_at_forged_leaves(), ""); }

TEST(ForgedLeaf, AKeptReferenceNeverLeadsIntoAValue) {
  EXPECT_EQ(keep_references_to_forged_leaves(), "");
}

}  // namespace
}  // namespace espalier::test
