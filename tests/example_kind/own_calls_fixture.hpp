// SPDX-License-Identifier: Apache-2.0
// For tests: a store that has the calls and tallies of tally.hpp, in this process or on a node.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "kinds/program/own_calls.hpp"
#include "node_api/program_kinds.hpp"
#include "tests/example_kind/tally.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::example {

/// The parameter is "embedded", or a path of NodeFixture::reach_by.
class OwnCallsOverEachWay : public test::NodeFixture,
                            public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (is_embedded()) {
      StoreOptions options;
      options.memory_bytes_max = std::uint64_t{64} << 20;
      options.huge_pages = false;
      store_.emplace(*Store::open(options, program_.offloads()));
      ASSERT_TRUE(store_->create_map("default"));
      return;
    }
    options_.own_kinds = kinds_.kinds();
    reach_by(GetParam());
    start();
    store_.emplace(connect());
  }
  void TearDown() override {
    store_.reset();
    device_.reset();
    node_.reset();  // before the objects of its options
  }
  [[nodiscard]] static bool is_embedded() { return std::string(GetParam()) == "embedded"; }
  /// The node's kinds may take one percent of this.
  static constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 20;

  TallyProgram program_;
  node_api::ProgramKinds kinds_{
      std::make_shared<const program::OwnCalls>(program_.offloads(), kMemoryBytes)};
  std::optional<Store> store_;
};

}  // namespace espalier::example
