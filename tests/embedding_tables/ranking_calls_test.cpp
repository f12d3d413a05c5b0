// SPDX-License-Identifier: Apache-2.0
// Ranking models of this process, of a node, and of a node behind a device, through one handle:
// every call with the same answers and errors; requests of many clients, which run in batches.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/random.hpp"
#include "channel/objects.hpp"
#include "client/store_impl.hpp"
#include "espalier/embedding_table.hpp"
#include "espalier/ranking_model.hpp"
#include "kinds/embedding/model/model_calls.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"
#include "wire/samples.hpp"

namespace espalier::test {
namespace {

constexpr std::uint32_t kRankingRows = 50;

/// "embedded", or as NodeFixture reaches a node. Two tables of whole numbers, and a model.
class RankingsOverEachWay : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "embedded") {
      StoreOptions options;
      options.memory_bytes_max = std::uint64_t{256} << 20;
      options.huge_pages = false;
      store_.emplace(*Store::open(options));
    } else {
      reach_by(GetParam());
      start();
      store_.emplace(connect());
    }
    parts_.draw(random_);
    for (const std::string& name : parts_.tables) {
      auto table = store_->create_embedding_table(name, {.dimension = parts_.dimension});
      ASSERT_TRUE(table) << message(table.error());
      std::vector<float> rows(std::size_t{kRankingRows} * parts_.dimension);
      for (float& value : rows) value = static_cast<float>(random_.below(9)) / 8 - 0.5F;
      ASSERT_TRUE(table->append(rows));
      rows_.push_back(std::move(rows));
    }
    auto made = store_->create_ranking_model("model", parts_.file());
    ASSERT_TRUE(made) << message(made.error());
    model_.emplace(*made);
  }

  /// Some queries, and their ranks as they ought to be.
  struct Queries {
    std::vector<float> dense;
    std::vector<std::vector<std::uint32_t>> ids, offsets;
    std::vector<embedding::Bounded> wanted;
    std::string text;
    [[nodiscard]] std::vector<EmbeddingBags> bags() const {
      std::vector<EmbeddingBags> all;
      for (std::size_t t = 0; t < ids.size(); ++t) all.push_back({ids[t], offsets[t]});
      return all;
    }
  };
  [[nodiscard]] Queries queries_of(std::uint32_t count, base::Random& random) const {
    Queries made;
    made.ids.resize(rows_.size());
    made.offsets.resize(rows_.size());
    for (std::uint32_t q = 0; q < count; ++q) {
      for (std::uint32_t i = 0; i < parts_.dense; ++i) {
        made.dense.push_back(static_cast<float>(random.below(17)) / 8 - 1);
        made.text += std::to_string(made.dense.back()) + " ";
      }
      std::vector<std::vector<embedding::Bounded>> pooled;
      for (std::size_t t = 0; t < rows_.size(); ++t) {
        made.text += "|";
        made.offsets[t].push_back(static_cast<std::uint32_t>(made.ids[t].size()));
        auto& sums = pooled.emplace_back(parts_.dimension);
        for (std::uint64_t i = random.below(4); i != 0; --i) {
          const auto id = static_cast<std::uint32_t>(random.below(kRankingRows));
          made.ids[t].push_back(id);
          made.text += " " + std::to_string(id);
          for (std::uint32_t c = 0; c < parts_.dimension; ++c) {
            sums[c].value += rows_[t][id * parts_.dimension + c];  // whole eighths: exact
          }
        }
      }
      made.text += "\n";
      const auto ranks =
          embedding::rank_plainly(parts_, std::span(made.dense).last(parts_.dense), pooled);
      made.wanted.insert(made.wanted.end(), ranks.begin(), ranks.end());
    }
    return made;
  }
  static void expect_near(const TableResult<std::vector<float>>& found, const Queries& queries) {
    ASSERT_TRUE(found) << message(found.error());
    ASSERT_EQ(found->size(), queries.wanted.size());
    for (std::size_t i = 0; i < found->size(); ++i) {
      ASSERT_NEAR((*found)[i], queries.wanted[i].value, queries.wanted[i].error) << i;
    }
  }
  [[nodiscard]] std::uint64_t sample(std::string_view name) const {
    wire::SamplesWanted wanted{};
    wanted.objects_max = 10;
    const auto sampled =
        channel::samples(*client::StoreImpl::of(*store_).channel(), wanted, "model");
    for (const wire::Sample& each : sampled->objects.front().samples) {
      if (each.name == name) return each.value;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  base::Random random_{5};
  embedding::RankingParts parts_;
  std::vector<std::vector<float>> rows_;
  std::optional<Store> store_;
  std::optional<RankingModel> model_;
};
class RankingsOfANode : public RankingsOverEachWay {};

TEST_P(RankingsOverEachWay, RankQueriesOfWordsAndOfText) {
  EXPECT_EQ(model_->name(), "model");
  EXPECT_EQ(model_->shape(), (RankingShape{5, 2, 8, 1}));
  EXPECT_EQ(store_->open_ranking_model("model")->shape(), model_->shape());
  for (const std::uint32_t count : {1u, 3u, 64u, 200u, 0u}) {
    const Queries queries = queries_of(count, random_);
    const std::vector<EmbeddingBags> bags = queries.bags();
    expect_near(model_->infer({queries.dense, bags}), queries);
    expect_near(model_->infer_text(queries.text), queries);
  }
}

// Of one table in the numbers of its groups, of the other by its rows; values are whole eighths, so
// that sums of groups are exact.
TEST_P(RankingsOverEachWay, RankQueriesOfRenumberedIds) {
  EmbeddingTable table = *store_->open_embedding_table("a");
  const std::uint8_t sizes[] = {3, 2};
  const std::uint32_t rows[] = {1, 7, 30, 4, 0};
  const auto made = table.group({sizes, rows});
  ASSERT_TRUE(made) << message(made.error());
  Queries queries = queries_of(100, random_);
  const std::vector<std::uint32_t> ids = queries.ids[0];
  const auto grouping = table.renumber(queries.ids[0]);
  ASSERT_EQ(grouping, *made);
  EXPECT_NE(queries.ids[0], ids);
  std::vector<EmbeddingBags> bags = queries.bags();
  bags[0].grouping = *grouping;
  expect_near(model_->infer({queries.dense, bags}), queries);
  bags[0].grouping = *grouping + 2;
  const auto other = model_->infer({queries.dense, bags});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().error, (Error{Code::outdated, 0, *grouping}));
  EXPECT_EQ(other.error().words, "a: ids are numbered by grouping " +
                                     std::to_string(*grouping + 2) +
                                     ", and the table has grouping " + std::to_string(*grouping));
  bags[0].grouping = 0;
  const auto unnumbered = model_->infer({queries.dense, bags});
  ASSERT_FALSE(unnumbered) << "such numbers are of no rows";
  EXPECT_EQ(unnumbered.error().error.code, Code::invalid_argument);
  bags[1].weights = queries.dense;
  EXPECT_EQ(model_->infer({queries.dense, bags}).error().words, "queries have no weights");
}

// A model finds its tables by name, whichever table has it: queries that are on their way end with
// the one that they began with, also where that is dropped.
TEST_P(RankingsOverEachWay, QueriesAreRankedWhileTablesTakeTheNamesOfOthers) {
  const Queries queries = queries_of(200, random_);
  std::atomic<bool> over{false};
  std::jthread reader([&] {
    const std::vector<EmbeddingBags> bags = queries.bags();
    do {
      expect_near(model_->infer({queries.dense, bags}), queries);
    } while (!over && !HasFailure());
  });
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    const std::size_t t = static_cast<std::size_t>(round) % parts_.tables.size();
    auto young = store_->create_embedding_table("young", {.dimension = parts_.dimension});
    EXPECT_TRUE(young && young->append(rows_[t]));
    const auto renamed =
        store_->rename_embedding_table("young", parts_.tables[t], Displaced::dropped);
    EXPECT_TRUE(renamed);
  }
  over = true;
}

TEST_P(RankingsOverEachWay, SayWhatIsWrong) {
  const auto words = [](const auto& result) {
    EXPECT_FALSE(result);
    return result ? "" : result.error().words;
  };
  const Queries queries = queries_of(2, random_);
  std::vector<EmbeddingBags> bags = queries.bags();
  EXPECT_EQ(words(model_->infer({std::span(queries.dense).first(9), bags})),
            "a query has 5 dense features");
  EXPECT_EQ(words(model_->infer({queries.dense, std::span(bags).first(1)})),
            "the model has 2 tables");
  EXPECT_EQ(words(model_->infer({std::span(queries.dense).first(5), bags})),
            "of each table there is a bag for each query");
  const std::uint32_t wrong[] = {0, kRankingRows};
  const std::uint32_t offsets[] = {0, 1};
  bags[1] = {wrong, offsets};
  EXPECT_EQ(words(model_->infer({queries.dense, bags})),
            "b: id 50 at place 1 is not below the table's 50 rows");
  EXPECT_EQ(words(model_->infer_text("1 2 3 4 5 | 0 |\n1 2 3 4 5 | 0 | x")),
            "line 2: 'x' is no number that stands here");
  EXPECT_EQ(words(store_->create_ranking_model("other", "no model")), "this is no file of a model");
  EXPECT_EQ(store_->create_ranking_model("model", parts_.file()).error().error.code,
            Code::already_exists);
  EXPECT_EQ(store_->open_embedding_table("model").error(), (Error{Code::wrong_kind, 0, 7}));
  EXPECT_EQ(store_->open_ranking_model("a").error(), (Error{Code::wrong_kind, 0, 6}));
  EXPECT_EQ(store_->open_ranking_model("none").error().code, Code::not_found);
  // A table is found by its name with each request.
  ASSERT_TRUE(store_->drop_embedding_table("b"));
  EXPECT_EQ(words(model_->infer_text("1 2 3 4 5 | 0 |")), "the model's embedding table b");
  ASSERT_TRUE(store_->create_embedding_table("b", {.dimension = 8})->append(rows_[1]));
  expect_near(model_->infer_text(queries.text), queries);
  ASSERT_TRUE(store_->drop_ranking_model("model"));
  EXPECT_EQ(model_->infer_text(queries.text).error().error.code, Code::not_found);
}

// Each has its own ranks, however requests are put together. That they are, the tests of a node's
// scheduler show (RankingOffloads).
TEST_P(RankingsOfANode, RequestsOfManyClientsRunTogether) {
  const std::uint64_t seed = seed_from_environment(4713);
  SCOPED_TRACE(seed_text(seed));
  constexpr int kClients = 4;
  constexpr int kRequests = 40;
  std::vector<std::jthread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      base::Random random(seed + static_cast<std::uint64_t>(i));
      const Store store = connect();
      const RankingModel model = *store.open_ranking_model("model");
      for (int k = 0; k < kRequests; ++k) {
        const Queries queries =
            queries_of(static_cast<std::uint32_t>(1 + random.below(20)), random);
        expect_near(k % 2 == 0 ? model.infer_text(queries.text)
                               : model.infer({queries.dense, queries.bags()}),
                    queries);
      }
    });
  }
  clients.clear();  // waits for them
  EXPECT_GE(sample("queries"), std::uint64_t{kClients} * kRequests);
  EXPECT_GE(sample("batches"), 1u);
}

TEST_P(RankingsOfANode, HostileRequestsAreRefused) {
  channel::Channel& channel = *client::StoreImpl::of(*store_).channel();
  const std::uint32_t id = channel::list(channel, ObjectKind::model)->front().id;
  const auto code = [&](const auto& request) {
    const wire::RequestMessage<std::remove_cvref_t<decltype(request)>> message(request);
    const auto answer = channel.ask(message.get());
    EXPECT_FALSE(answer);
    return answer ? Code::invalid : answer.error().error.code;
  };
  const auto infer = [&](embedding::InferShape shape, std::string_view bytes) {
    return code(model_calls::Infer{id, shape, bytes});
  };
  EXPECT_EQ(infer({0, 2}, ""), Code::invalid_argument);
  EXPECT_EQ(infer({1, 1}, ""), Code::invalid_argument);
  EXPECT_EQ(infer({1, 0}, "abc"), Code::invalid_argument);
  EXPECT_EQ(infer({~0u, 0}, "abc"), Code::invalid_argument);
  EXPECT_EQ(infer({1, 0}, std::string(40, '\xff')), Code::invalid_argument);
  EXPECT_EQ(code(model_calls::Infer{id + 77, {0, 1}, ""}), Code::not_found);
  EXPECT_EQ(code(model_calls::Create{"x", std::string(64, '\0')}), Code::invalid_argument);
  const Queries queries = queries_of(2, random_);
  expect_near(model_->infer_text(queries.text), queries);
}

INSTANTIATE_TEST_SUITE_P(Ways, RankingsOverEachWay,
                         ::testing::Values("embedded", "unix", "shm", "roce", "device"), way_name);
INSTANTIATE_TEST_SUITE_P(Ways, RankingsOfANode, ::testing::Values("unix", "device"), way_name);

}  // namespace
}  // namespace espalier::test
