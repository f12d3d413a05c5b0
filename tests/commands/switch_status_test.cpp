// SPDX-License-Identifier: Apache-2.0
// `espalier switch status` beside a node and a client whose READs carry keys.
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "kinds/map/offload/map_services.hpp"
#include "tests/support/in_network_fixture.hpp"
#include "tools/testing/tool_fixture.hpp"

namespace espalier::test {
namespace {

class SwitchStatus : public InNetwork {};

// The command shows the node's counts of READs by key, and what leases hold.
TEST_F(SwitchStatus, StatusAtANodeTellsMissesAndWhatIsHeld) {
  start();
  fill(2'000);
  open_switch();
  tools::Tool tool;
  tool.connect = [](const std::string& at, const StoreOptions& how) {
    return Store::connect(at, how);
  };
  const auto status = [&] {
    EXPECT_EQ(tool.run({"switch", "status", "--control", control(), "--at", config_.node.fabric,
                        "--json"}),
              tools::kOk)
        << tool.err();
    return nlohmann::json::parse(tool.out());
  };
  const offload::IndexReadCounts& met = node_->services().part<offload::MapServices>().index_reads;
  for (const char* const name :
       {"node_reads_resolved", "node_reads_at_leaves", "node_held_bytes"}) {
    EXPECT_EQ(status().at(name), 0) << name;
  }
  open_reader();
  trips_of(key_of(5));
  auto now = status();
  EXPECT_GE(now.at("node_reads_resolved"), 1) << "no table had met it";
  EXPECT_EQ(now.at("node_reads_resolved"), met.resolved.load());
  EXPECT_EQ(now.at("node_reads_at_leaves"), 0);
  IndexController controller = this->controller();
  ASSERT_EQ(did(controller), Did::installed);
  expect_trips(1, key_of(17), &controller);
  now = status();
  EXPECT_EQ(now.at("maps"), 1);
  EXPECT_GE(now.at("node_reads_at_leaves"), 1) << "a table led it there";
  EXPECT_EQ(now.at("node_reads_at_leaves"), met.leaves.load());
  EXPECT_EQ(now.at("node_reads_at_interior_nodes"), met.interior.load());
  EXPECT_EQ(now.at("node_reads_at_nothing"), met.nothing.load());
  EXPECT_EQ(now.at("node_reads_resolved"), met.resolved.load());
  // Replaced buffers are held until the next renewals of the reader and of the controller. On a
  // busy machine both leases may be lost, and then nothing is held: check once they are back.
  std::uint64_t held = 0;
  for (int i = 0; i < 10'000 && held == 0; ++i) {
    if (i != 0) did(controller);
    for (std::uint64_t k = 0; k < 200; ++k) put(key_of(k * 10), "new " + std::to_string(i));
    held = status().at("node_held_bytes").get<std::uint64_t>();
  }
  EXPECT_GT(held, 0u);
  ASSERT_EQ(tool.run({"switch", "status", "--control", control(), "--at", config_.node.fabric}),
            tools::kOk);
  for (const char* const line : {"\nnode_reads_resolved   ", "\nnode_held_bytes   "}) {
    EXPECT_NE(tool.out().find(line), std::string::npos) << tool.out();
  }
}

}  // namespace
}  // namespace espalier::test
