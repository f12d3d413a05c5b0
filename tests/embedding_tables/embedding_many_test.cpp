// SPDX-License-Identifier: Apache-2.0
// Many reductions at a time come to what each comes to alone, and each says what is wrong with it.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/embedding_table.hpp"
#include "tests/embedding_tables/embedding_renames.hpp"

namespace espalier::test {
namespace {

/// Requests with their memory.
struct OwnRequests {
  /// One bag of these ids.
  void add(std::vector<std::uint32_t> ids_in, std::size_t floats = kWidth) {
    ids.push_back(std::move(ids_in));
    results.emplace_back(floats, -1.0F);
  }
  std::vector<ReduceRequest>& get() {
    requests.clear();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ReduceRequest& request = requests.emplace_back();
      request.bags = {ids[i], first};
      request.results = results[i];
    }
    return requests;
  }

  const std::vector<std::uint32_t> first = {0};
  std::vector<std::vector<std::uint32_t>> ids;
  std::vector<std::vector<float>> results;
  std::vector<ReduceRequest> requests;
};

class EmbeddingMany : public EmbeddingRenames {};

TEST_P(EmbeddingMany, EachComesToWhatItComesToAlone) {
  EmbeddingTable table = make("items", 1);
  ASSERT_TRUE(table.replace(1, std::vector<float>(kWidth, 10)));
  OwnRequests many;
  for (std::uint32_t i = 0; i < 300; ++i) {
    // Some have one row, some a window of them, and one is too long to go with others.
    many.add(std::vector<std::uint32_t>(i == 200 ? 9000 : i % 40, i % 2));
  }
  for (const std::uint32_t in_flight : {1u, 7u, 256u}) {
    std::vector<ReduceRequest>& requests = many.get();
    ASSERT_TRUE(table.reduce_many(requests, in_flight));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(requests[i].error.error, Error{}) << i << message(requests[i].error);
      const auto rows = static_cast<float>(many.ids[i].size());
      ASSERT_EQ(many.results[i].back(), i % 2 == 0 ? rows : 10 * rows) << i;
      many.results[i].back() = -1;
    }
  }
  EXPECT_EQ(table.stats()->reductions, 900u * (std::string(GetParam()) != "shm_one_sided"));
}

TEST_P(EmbeddingMany, EachSaysWhatIsWrongWithIt) {
  EmbeddingTable table = make("items", 3);
  OwnRequests many;
  many.add({0, 1});
  many.add({0, 77});
  many.add({2}, kWidth - 1);
  many.add({3});
  std::vector<ReduceRequest>& requests = many.get();
  ASSERT_TRUE(table.reduce_many(requests));
  EXPECT_EQ(requests[0].error.error, Error{});
  EXPECT_EQ(many.results[0].front(), 6);
  EXPECT_EQ(requests[1].error.error, (Error{Code::invalid_argument, 0, 77}));
  EXPECT_EQ(requests[1].error.words, "id 77 at place 1 is not below the table's 4 rows");
  EXPECT_EQ(requests[2].error.words,
            "the results have no room for as many floats as the bags come to");
  EXPECT_EQ(requests[3].error.error, Error{});
  EXPECT_EQ(many.results[3].front(), 3);
  EXPECT_EQ(table.reduce_many(requests, 0).error().error, (Error{Code::invalid_argument, 0, 0}));
  EXPECT_EQ(table.reduce_many(requests, 257).error().error,
            (Error{Code::invalid_argument, 0, 257}));
  ASSERT_TRUE(table.reduce_many({}));
}

TEST_P(EmbeddingMany, FollowTheTablesName) {
  EmbeddingTable items = make("items", 1);
  make("items.new", 2);
  OwnRequests many;
  for (int i = 0; i < 20; ++i) many.add({0, 1});
  ASSERT_EQ(rename("items.new", "items", Displaced::dropped), Error{});
  ASSERT_TRUE(items.reduce_many(many.get()));
  for (const std::vector<float>& results : many.results) EXPECT_EQ(results.front(), 4);
  ASSERT_TRUE(store_->drop_embedding_table("items"));
  ASSERT_TRUE(items.reduce_many(many.get()));
  for (const ReduceRequest& request : many.requests) {
    EXPECT_EQ(request.error.error.code, Code::not_found);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, EmbeddingMany,
                         ::testing::Values("embedded", "unix", "shm", "roce", "device",
                                           "shm_one_sided"),
                         way_name);

}  // namespace
}  // namespace espalier::test
