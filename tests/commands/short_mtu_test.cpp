// SPDX-License-Identifier: Apache-2.0
// The command and a node, with an interface between them that drops long packets: requests that do
// not get through end with that error.
//
// Needs what fabric/roce/network_namespaces.hpp needs; without it the tests are skipped.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "fabric/roce/network_namespaces.hpp"
#include "tests/support/node_program.hpp"

namespace espalier {
namespace {

using fabric::roce::NetworkNamespaces;

class ShortMtuSlow : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    network = NetworkNamespaces::open(why);
    if (!network) GTEST_SKIP() << why;
    const std::vector<std::string> words{
        ESPALIER_PROGRAM, "serve",           "--node-socket",       (folder / "s").string(),
        "--node-fabric",  "roce://" + kNode, "--clients-open",      "true",
        "--memory-limit", "64MiB",           "--memory-huge-pages", "no"};
    network->at(1, [&] { return node.emplace(folder.path(), words), true; });
    ASSERT_EQ(node->next_message(), "READY=1");
  }
  /// Runs the command in the other network stack. Returns whether it succeeded.
  [[nodiscard]] bool run(const std::string& arguments) const {
    return network->run(0, ESPALIER_PROGRAM " " + arguments + " --at roce://" + kNode);
  }
  /// A datagram that the kernel fragments later passes the other interface at any length, so this
  /// limits only what one side may send.
  void set_mtu(int side, int bytes) const {
    ASSERT_TRUE(network->run(side, "ip link set " + NetworkNamespaces::interface_of(side) +
                                       " mtu " + std::to_string(bytes)))
        << network->said();
  }
  void expect_undelivered(const std::string& arguments) const {
    EXPECT_FALSE(run(arguments)) << arguments;
    EXPECT_NE(network->said().find("packets of 1"), std::string::npos) << network->said();
    EXPECT_NE(network->said().find(" bytes do not get through"), std::string::npos)
        << network->said();
  }

  const std::string kNode = "10.77.0.2:20001/1";
  base::TemporaryFolder folder;
  std::unique_ptr<NetworkNamespaces> network;
  std::optional<test::NodeProgram> node;
};

TEST_F(ShortMtuSlow, EndsWhatDoesNotGetThroughWithItsLength) {
  const std::string put = "put key " + std::string(3000, 'x');
  set_mtu(0, 1000);
  EXPECT_TRUE(run("put other short")) << network->said();
  expect_undelivered(put);
  set_mtu(0, 1500);
  ASSERT_TRUE(run(put)) << network->said();
  set_mtu(1, 1000);
  expect_undelivered("get key");
  set_mtu(1, 1500);
  EXPECT_TRUE(run("get key")) << network->said();
}

}  // namespace
}  // namespace espalier
