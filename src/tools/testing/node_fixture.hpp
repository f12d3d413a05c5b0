// SPDX-License-Identifier: Apache-2.0
// For tests: a node in this process, and the command that talks to it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "node/node.hpp"
#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {

class NodeTool : public ::testing::Test {
 protected:
  NodeTool() {
    config.node.socket = (folder / "s").string();
    config.memory.limit = std::uint64_t{64} << 20;
    config.memory.huge_pages = false;
    tool.connect = [](const std::string& where, const StoreOptions& options) {
      return Store::connect(where, options);
    };
  }
  void SetUp() override {
    auto started = node::Node::start(config);
    ASSERT_TRUE(started) << message(started.error());
    node = std::move(*started);
    address = "unix:" + config.node.socket;
  }

  /// Runs a command with the node's address.
  int run(std::vector<std::string> words) {
    words.insert(words.begin() + 1, {"--at", address});
    return tool.run(words);
  }
  /// The same for "map list" and its like.
  int run_map(std::vector<std::string> words) {
    words.insert(words.begin(), "map");
    words.insert(words.begin() + 2, {"--at", address});
    return tool.run(words);
  }

  base::TemporaryFolder folder;  // outlives the node
  node::Config config;
  std::unique_ptr<node::Node> node;
  std::string address;
  Tool tool;
};

}  // namespace espalier::tools
