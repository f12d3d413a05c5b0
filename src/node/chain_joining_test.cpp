// SPDX-License-Identifier: Apache-2.0
// What becomes of the folder of one that joins, while nothing can be fetched.
#include "node/chain_joining.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_folder.hpp"
#include "chain/file_membership.hpp"
#include "log/checkpoint_writer.hpp"
#include "log/store_file.hpp"
#include "node/chain_folder.hpp"

namespace espalier::node {
namespace {

/// No node can reach member 1, and 'b' joins.
class ChainJoiningTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_.chain.members = (folder_ / "members").string();
    config_.chain.name = "b";
    config_.data.dir = (folder_ / "data").string();
    std::filesystem::create_directories(config_.data.dir + "/log");
    std::ofstream(file_) << "all that it has";
    const chain::View view{
        .chain = 9, .epoch = 1, .fence_ms = 1000, .members = {{1, "a", "nowhere"}}};
    put(view);
    put(view.with_joining("b", "nowhere"));
  }
  void put(const chain::View& view) {
    const auto taken = chain::FileMembership(config_.chain.members).replace(view);
    ASSERT_TRUE(taken && *taken);
  }

  base::TemporaryFolder folder_;
  Config config_;
  const std::string file_ = (folder_ / "data/log").string() + "/" +
                            log::numbered_name(log::kCheckpointBegin, 3, log::kWhole);
};

TEST_F(ChainJoiningTest, AMembersFolderIsNotThrownAway) {
  ASSERT_TRUE(write_chain_folder(config_.data.dir, {9, 1}));
  EXPECT_FALSE(begin_to_join({.config = config_}));
  const auto found = read_chain_folder(config_.data.dir);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (ChainFolder{9, 1}));
  EXPECT_TRUE(std::filesystem::exists(file_));
}

TEST_F(ChainJoiningTest, ALogStaysUntilTheTailHasAnswered) {
  put(chain::FileMembership(config_.chain.members).read()->value().with_joining("b", "nowhere"));
  ASSERT_TRUE(write_chain_folder(config_.data.dir, {9, 2}));  // an earlier life of it
  std::string said;
  const auto joined =
      begin_to_join({.config = config_,
                     .stopped = [&] { return said.contains("cannot be asked"); },
                     .report = [&](const std::string& line) { said += line + "\n"; }});
  ASSERT_TRUE(joined) << joined.error();
  EXPECT_FALSE(*joined);
  const auto found = read_chain_folder(config_.data.dir);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (ChainFolder{9, 4, true}));
  EXPECT_TRUE(std::filesystem::exists(file_));
}

}  // namespace
}  // namespace espalier::node
