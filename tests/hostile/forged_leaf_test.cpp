// SPDX-License-Identifier: Apache-2.0
// Forged nodes: bytes of a client's value that look like a leaf are never taken for one, neither by
// the host, which a hint from outside leads there, nor by a remote reader with an old reference to
// that memory (DESIGN §2.2 rule 4).
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
