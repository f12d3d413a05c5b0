// SPDX-License-Identifier: Apache-2.0
// For tests: renames of embedding tables, over each channel.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "channel/channel.hpp"
#include "client/store_impl.hpp"
#include "espalier/embedding_table.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {

inline constexpr std::uint32_t kWidth = 64;
inline constexpr std::uint32_t kRows = 4;

/// The parameter is "embedded", or a path of NodeFixture::reach_by.
class EmbeddingRenames : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "embedded") {
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
  [[nodiscard]] channel::Channel& channel() const {
    return *client::StoreImpl::of(*store_).channel();
  }
  /// A table with this value everywhere.
  EmbeddingTable make(const std::string& name, float value,
                      const EmbeddingOptions& options = {kWidth, EmbeddingType::fp32}) {
    auto made = store_->create_embedding_table(name, options);
    EXPECT_TRUE(made) << message(made.error());
    EXPECT_TRUE(made->append(std::vector<float>(options.dimension * kRows, value)));
    return *made;
  }
  [[nodiscard]] Error rename(const std::string& name, const std::string& to,
                             Displaced displaced = Displaced::refused) {
    const auto done = store_->rename_embedding_table(name, to, displaced);
    return done ? Error{} : done.error();
  }
  /// The value of its rows; 0: none.
  [[nodiscard]] static float value_of(const EmbeddingTable& table) {
    const std::uint32_t ids[] = {0, 3};
    const std::uint32_t first[] = {0};
    const auto found = table.reduce(Reduction::max, {ids, first});
    if (found) return found->front();
    EXPECT_EQ(found.error().error.code, Code::not_found) << message(found.error());
    return 0;
  }

  std::optional<Store> store_;
};

}  // namespace espalier::test
