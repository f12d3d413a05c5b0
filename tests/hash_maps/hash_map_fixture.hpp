// SPDX-License-Identifier: Apache-2.0
// For tests: a store with hash maps, in this process or on a node.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/store_impl.hpp"
#include "espalier/hash_map.hpp"
#include "kinds/hash/audit.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {

/// The parameter is "embedded", or a path of NodeFixture::reach_by.
class HashMapOverEachWay : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (is_embedded()) {
      StoreOptions options;
      options.memory_bytes_max = std::uint64_t{256} << 20;
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
  [[nodiscard]] const catalog::Catalog& objects() const {
    return is_embedded() ? *channel().own_objects() : node_->catalog();
  }
  /// The hash map's own audit, at each place.
  [[nodiscard]] std::vector<std::string> audit(const std::string& name) const {
    const auto map = objects().open<hash::HashMap>(name);
    if (!map) return {"there is none"};
    (*map)->trim();
    see_all_writes(**map);
    return hash::audit(**map).wrong;
  }

  std::optional<Store> store_;

 private:
  /// Takes each lock once. Answers through rings order writes only by shared memory, which
  /// ThreadSanitizer does not see.
  static void see_all_writes(hash::HashMap& map) {
    hash::HashThread thread = hash::HashThread::join(map.store()).value();
    for (const hash::Partition& partition : map.partitions()) {
      const hash::PartitionGuard guard(partition.lock, thread.holder());
    }
  }
};

}  // namespace espalier::test
