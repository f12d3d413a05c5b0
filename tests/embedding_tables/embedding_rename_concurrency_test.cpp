// SPDX-License-Identifier: Apache-2.0
// A reader of an embedding table by name, while tables exchange names, is answered by exactly one
// of them.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "espalier/embedding_table.hpp"
#include "tests/embedding_tables/embedding_renames.hpp"

namespace espalier::test {
namespace {

class EmbeddingRenamesConcurrency : public EmbeddingRenames {};

// Versions of a table take its name repeatedly. Many bags, which need several requests, are all of
// one version, which had the name at some moment of the reduction.
TEST_P(EmbeddingRenamesConcurrency, ReadersSeeOneVersionOrTheOther) {
  constexpr int kVersions = 14;
  constexpr std::uint32_t kBags = 1100;  // more than the answer of one request has room for
  EmbeddingTable items = make("items", 1);
  std::atomic<int> begun{1};
  std::atomic<int> done{1};
  std::atomic<bool> over{false};
  std::vector<std::uint32_t> ids(kBags);
  std::vector<std::uint32_t> offsets(kBags);
  for (std::uint32_t bag = 0; bag < kBags; ++bag) {
    ids[bag] = bag % kRows;
    offsets[bag] = bag;
  }
  const auto read = [&](bool opens) {
    int reads = 0;
    do {
      const int before = done;
      auto opened = opens ? store_->open_embedding_table("items") : Result<EmbeddingTable>(items);
      ASSERT_TRUE(opened) << message(opened.error());
      const auto found = opened->reduce(Reduction::sum, {ids, offsets});
      const int after = begun;
      ASSERT_TRUE(found) << message(found.error());
      const float value = found->front();
      for (const float each : *found) ASSERT_EQ(each, value) << "two versions in one reduction";
      ASSERT_GE(value, static_cast<float>(before)) << "a version that was replaced before";
      ASSERT_LE(value, static_cast<float>(after));
      ++reads;
    } while (!over || reads < 2);
  };
  std::jthread by_handle([&] { read(false); });
  std::jthread by_name([&] { read(true); });
  for (int version = 2; version <= kVersions; ++version) {
    make("items.new", static_cast<float>(version));
    begun = version;
    const bool drops = version % 2 == 0;
    EXPECT_EQ(rename("items.new", "items", drops ? Displaced::dropped : Displaced::exchanged),
              Error{});
    done = version;
    if (drops) continue;
    EXPECT_TRUE(store_->drop_embedding_table("items.new"));
  }
  over = true;
  by_handle.join();
  by_name.join();
  EXPECT_EQ(value_of(items), kVersions);
}

INSTANTIATE_TEST_SUITE_P(Ways, EmbeddingRenamesConcurrency,
                         ::testing::Values("embedded", "unix", "shm_one_sided"), way_name);

}  // namespace
}  // namespace espalier::test
