// SPDX-License-Identifier: Apache-2.0
// The chain and member number of a data folder, and which member may start with it.
#include "node/chain_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/temporary_folder.hpp"

namespace espalier::node {
namespace {

class ChainFolderTest : public ::testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(folder_ / "chain") << text; }
  [[nodiscard]] std::expected<std::optional<ChainFolder>, std::string> read() const {
    return read_chain_folder(dir());
  }
  [[nodiscard]] std::string dir() const { return folder_.path().string(); }
  [[nodiscard]] bool claims(const chain::View& view, std::uint32_t self, std::uint64_t held) const {
    const auto claimed = claim_chain_folder(dir(), view, self, held);
    return claimed.has_value();
  }

  chain::View view_{.chain = 9,
                    .epoch = 1,
                    .fence_ms = 1000,
                    .members = {{1, "a", "shm:/a"}, {2, "b", "shm:/b"}}};
  base::TemporaryFolder folder_;
};

TEST_F(ChainFolderTest, SaysWhatWasWritten) {
  ASSERT_TRUE(read());
  EXPECT_EQ(*read(), std::nullopt);
  for (const ChainFolder folder : {ChainFolder{9, 2}, ChainFolder{~std::uint64_t{0}, 41, true}}) {
    ASSERT_TRUE(write_chain_folder(dir(), folder));
    ASSERT_TRUE(read());
    EXPECT_EQ(*read(), folder);
  }
  for (const char* const text :
       {"", "chain", "chain 9 member 2", "chain 9 member 2 begin\n", "chain 9 member 2 begins",
        "chain x member 2\n", "chain 09 member 2\n", "chain 9 member 2\n\n"}) {
    write(text);
    EXPECT_FALSE(read()) << text;
  }
}

TEST_F(ChainFolderTest, BecomesAMembersWhileTheChainIsNew) {
  EXPECT_FALSE(claims(view_, 2, 5));  // records of whatever
  EXPECT_TRUE(claims(view_, 1, 5));   // but the head's may be a node's of its own
  EXPECT_EQ(*read(), (ChainFolder{9, 1}));
  view_.whole = true;
  EXPECT_TRUE(claims(view_, 1, 6));
  EXPECT_FALSE(claims(view_, 2, 0));
  view_.chain = 10;
  EXPECT_FALSE(claims(view_, 1, 6));
}

TEST_F(ChainFolderTest, OfALaterChainIsNobodysWhoHasNone) {
  view_.whole = true;
  EXPECT_FALSE(claims(view_, 1, 0));
  EXPECT_FALSE(claims(view_, 2, 0));
}

TEST_F(ChainFolderTest, OfOneThatJoinsCountsOnceItHasBegun) {
  view_ = view_.with_joining("c", "shm:/c");
  EXPECT_FALSE(claims(view_, 3, 0));
  ASSERT_TRUE(write_chain_folder(dir(), {9, 3, true}));
  EXPECT_FALSE(claims(view_, 3, 0));
  ASSERT_TRUE(write_chain_folder(dir(), {9, 3}));
  EXPECT_TRUE(claims(view_, 3, 7));
}

}  // namespace
}  // namespace espalier::node
