// SPDX-License-Identifier: Apache-2.0
// For tests: a store that has queues, in this process or on a node.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/example_kind/client.hpp"
#include "tests/example_kind/kind.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::example {

/// The parameter is "embedded", or a path of NodeFixture::reach_by.
class QueueOverEachWay : public test::NodeFixture,
                         public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    options_.own_kinds = {&queue_kind(), 1};
    if (is_embedded()) {
      StoreOptions options;
      options.memory_bytes_max = std::uint64_t{64} << 20;
      options.huge_pages = false;
      store_.emplace(*Store::open(options));
      return;
    }
    reach_by(GetParam());
    start();
    store_.emplace(connect());
  }
  [[nodiscard]] static bool is_embedded() { return std::string(GetParam()) == "embedded"; }
  [[nodiscard]] channel::Channel& channel() const {
    return *client::StoreImpl::of(*store_).channel();
  }
  /// The queue's own audit.
  [[nodiscard]] std::vector<std::string> audit(const std::string& name) const {
    const catalog::Catalog& objects = is_embedded() ? *channel().own_objects() : node_->catalog();
    const auto queue = objects.open<Queue>(name);
    return queue ? (*queue)->audit() : std::vector<std::string>{"there is none"};
  }

  std::optional<Store> store_;
};

}  // namespace espalier::example
