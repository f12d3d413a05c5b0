// SPDX-License-Identifier: Apache-2.0
// Embedding tables of this process, of a node, of a node whose rows clients read, and of a node
// behind a device, through one handle: every call with the same answers and errors; requests too
// long for one message, hostile ones, and gathers during replacements.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "channel/objects.hpp"
#include "client/store_impl.hpp"
#include "espalier/embedding_table.hpp"
#include "kinds/embedding/audit.hpp"
#include "kinds/embedding/calls.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"
#include "wire/samples.hpp"

namespace espalier::test {
namespace {

constexpr std::uint32_t kEmbedding = 6;  // ObjectKind::embedding, as errors have it

/// "embedded", or as NodeFixture reaches a node.
class EmbeddingsOverEachWay : public NodeFixture,
                              public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (is_embedded()) {
      StoreOptions options;
      options.memory_bytes_max = memory_bytes_;
      options.huge_pages = false;
      store_.emplace(*Store::open(options));
      return;
    }
    reach_by(GetParam());
    start();
    store_.emplace(connect());
  }
  [[nodiscard]] static bool is_embedded() { return std::string(GetParam()) == "embedded"; }
  /// Whether rows are read by this process, so that no reduction is the node's.
  [[nodiscard]] static bool reads_alone() { return std::string(GetParam()).ends_with("one_sided"); }
  [[nodiscard]] channel::Channel& channel() const {
    return *client::StoreImpl::of(*store_).channel();
  }
  [[nodiscard]] std::vector<std::string> audit(const std::string& name) const {
    const catalog::Catalog& objects = is_embedded() ? *channel().own_objects() : node_->catalog();
    const auto table = objects.open<embedding::EmbeddingTable>(name);
    return table ? embedding::audit(**table) : std::vector<std::string>{"there is none"};
  }
  [[nodiscard]] EmbeddingTable make(const std::string& name, const EmbeddingOptions& options) {
    auto made = store_->create_embedding_table(name, options);
    EXPECT_TRUE(made) << message(made.error());
    return *made;
  }

  std::uint64_t memory_bytes_ = std::uint64_t{256} << 20;  // of a store of this process
  std::optional<Store> store_;
};
class EmbeddingsOfANode : public EmbeddingsOverEachWay {};

/// Of stores that have 64 MiB.
class EmbeddingsInLittleMemory : public EmbeddingsOverEachWay {
 protected:
  EmbeddingsInLittleMemory() {
    memory_bytes_ = std::uint64_t{64} << 20;
    config_.memory.limit = memory_bytes_;
  }
};

/// A row of this value, as many as are asked for.
std::vector<float> rows_of(float value, std::size_t dimension, std::size_t rows = 1) {
  return std::vector<float>(dimension * rows, value);
}

TEST_P(EmbeddingsOverEachWay, DoWhatTheirCallsSay) {
  for (const EmbeddingType type :
       {EmbeddingType::fp32, EmbeddingType::fp16, EmbeddingType::bf16, EmbeddingType::int8}) {
    EmbeddingTable table = make("t", {16, type});
    EXPECT_EQ(table.name(), "t");
    EXPECT_EQ(table.options(), (EmbeddingOptions{16, type}));
    EXPECT_EQ(table.append(rows_of(1, 16, 2)), 0u);
    EXPECT_EQ(table.append(rows_of(4, 16)), 2u);
    ASSERT_TRUE(table.replace(1, rows_of(2, 16)));
    const std::vector<std::uint32_t> ids = {0, 1, 2, 2};
    const std::vector<std::uint32_t> offsets = {0, 3, 3};
    const auto of = [&](Reduction reduction, std::span<const float> vector = {}) {
      const auto found = table.reduce(reduction, {ids, offsets}, vector);
      EXPECT_TRUE(found) << message(found.error());
      return found ? *found : std::vector<float>{};
    };
    const auto bags = [](float first, float last) {
      std::vector<float> all = rows_of(first, 16);
      all.resize(32);  // the empty bag
      all.insert(all.end(), 16, last);
      return all;
    };
    EXPECT_EQ(of(Reduction::sum), bags(7, 4));
    EXPECT_EQ(of(Reduction::mean), bags(7.0F / 3, 4));
    EXPECT_EQ(of(Reduction::max), bags(4, 4));
    EXPECT_EQ(of(Reduction::min), bags(1, 4));
    EXPECT_EQ(of(Reduction::inner_product, rows_of(0.5, 16)), (std::vector<float>{56, 0, 32}));
    const std::vector<float> weights = {1, 0.5, 0.25, -1};
    const auto weighted = table.reduce(Reduction::sum, {ids, offsets, weights});
    ASSERT_TRUE(weighted);
    EXPECT_EQ(*weighted, bags(3, -4));
    const auto stats = table.stats();
    ASSERT_TRUE(stats);
    EXPECT_EQ(stats->rows, 3u);
    EXPECT_EQ(stats->reductions, reads_alone() ? 0u : 18u);
    EXPECT_EQ(stats->rows_gathered, reads_alone() ? 0u : 24u);
    EXPECT_EQ(stats->rows_replaced, 1u);
    EXPECT_EQ(audit("t"), std::vector<std::string>{});
    ASSERT_TRUE(store_->drop_embedding_table("t"));
    EXPECT_EQ(table.reduce(Reduction::sum, {ids, offsets}).error().error.code, Code::not_found);
    EXPECT_EQ(table.append(rows_of(1, 16)).error().error.code, Code::not_found);
    EXPECT_EQ(table.stats().error().code, Code::not_found);
  }
}

TEST_P(EmbeddingsOverEachWay, KeepSumsOfGroups) {
  EmbeddingTable table = make("t", {16, EmbeddingType::fp16});
  for (int row = 0; row < 10; ++row) {
    ASSERT_TRUE(table.append(rows_of(static_cast<float>(1 << row), 16)));
  }
  const std::vector<std::uint8_t> sizes = {2, 3};
  const std::vector<std::uint32_t> rows = {9, 0, 4, 5, 6};
  const auto made = table.group({sizes, rows});
  ASSERT_TRUE(made);
  const std::vector<std::uint32_t> ids = {0, 9, 1, 4, 6, 9};
  const std::vector<std::uint32_t> offsets = {0};
  EXPECT_EQ(table.reduce(Reduction::sum, {ids, offsets}).value(), rows_of(2 * 512 + 83, 16));
  EXPECT_EQ(table.stats()->rows_gathered, reads_alone() ? 0u : 4u);
  EXPECT_EQ(table.stats()->sums_gathered, reads_alone() ? 0u : 2u);
  EXPECT_EQ(table.stats()->rows_saved, reads_alone() ? 0u : 2u);
  EXPECT_EQ(table.stats()->groups, 2u);
  EXPECT_EQ(table.stats()->grouped_rows, 5u);
  EXPECT_GT(table.stats()->group_bytes, 0u);
  ASSERT_TRUE(table.replace(9, rows_of(1024, 16)));
  EXPECT_EQ(table.reduce(Reduction::sum, {ids, offsets}).value(), rows_of(2 * 1024 + 83, 16));
  std::vector<std::uint32_t> renumbered = ids;
  EXPECT_EQ(table.renumber(renumbered), *made);
  EXPECT_NE(renumbered, ids);
  EXPECT_EQ(renumbered[2], 1u) << "it has no group";
  std::vector<std::uint32_t> many(10'000, 9);  // more than a request has
  const auto grouping = table.renumber(many);
  ASSERT_TRUE(grouping);
  EXPECT_EQ(many, std::vector<std::uint32_t>(10'000, renumbered[1]));
  for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
    EXPECT_EQ(table.reduce(reduction, {renumbered, offsets, {}, *grouping}).value(),
              table.reduce(reduction, {ids, offsets}).value());
  }
  const auto words = [](const auto& result) { return result.error().words; };
  EXPECT_EQ(words(table.reduce(Reduction::sum, {renumbered, offsets})),
            "id 2147483649 at place 0 is not below the table's 10 rows")
      << "without the grouping";
  EXPECT_EQ(table.reduce(Reduction::sum, {renumbered, offsets, {}, *grouping + 2}).error().error,
            (Error{Code::outdated, 0, *grouping}));
  EXPECT_EQ(words(table.reduce(Reduction::sum, {renumbered, offsets, {}, *grouping + 2})),
            "ids are numbered by grouping " + std::to_string(*grouping + 2) +
                ", and the table has grouping " + std::to_string(*grouping));
  const std::vector<std::uint32_t> twice = {9, 0, 4, 5, 0};
  EXPECT_EQ(words(table.group({sizes, twice})), "id 0 at place 4 is in a group already");
  EXPECT_EQ(words(table.group({sizes, ids})), "groups have 5 rows together, and there are 6 ids");
  renumbered = {1, 10};
  EXPECT_EQ(words(table.renumber(renumbered)), "id 10 at place 1 is not below the table's 10 rows");
  EXPECT_EQ(audit("t"), std::vector<std::string>{});
  EXPECT_EQ(table.group({}), 0u);
  EXPECT_EQ(table.stats()->group_bytes, 0u);
  EXPECT_EQ(table.reduce(Reduction::sum, {ids, offsets}).value(), rows_of(2 * 1024 + 83, 16));
  renumbered = ids;
  EXPECT_EQ(table.renumber(renumbered), 0u);
  EXPECT_EQ(renumbered, ids);
  ASSERT_TRUE(store_->drop_embedding_table("t"));
  EXPECT_EQ(table.group({sizes, rows}).error().error.code, Code::not_found);
  EXPECT_EQ(table.renumber(renumbered).error().error.code, Code::not_found);
}

TEST_P(EmbeddingsOverEachWay, SayWhatIsWrong) {
  EmbeddingTable table = make("t", {8, EmbeddingType::int8});
  const auto code = [](const auto& result) { return result.error().code; };
  EXPECT_EQ(code(store_->create_embedding_table("x", {12, EmbeddingType::fp32})),
            Code::invalid_argument);
  EXPECT_EQ(code(store_->create_embedding_table("x", {8, static_cast<EmbeddingType>(9)})),
            Code::invalid_argument);
  EXPECT_EQ(store_->create_embedding_table("t", {8, EmbeddingType::fp32}).error(),
            (Error{Code::already_exists, 0, kEmbedding}));
  EXPECT_EQ(store_->open_map("t").error(), (Error{Code::wrong_kind, 0, kEmbedding}));
  EXPECT_EQ(code(store_->open_embedding_table("none")), Code::not_found);
  ASSERT_TRUE(store_->open_embedding_table("t"));
  ASSERT_TRUE(table.append(rows_of(1, 8, 10)));
  const auto words = [](const auto& result) {
    EXPECT_EQ(result.error().error.code, Code::invalid_argument);
    return result.error().words;
  };
  EXPECT_NE(words(table.append(rows_of(1, 7))).find("8 values"), std::string::npos);
  EXPECT_NE(words(table.append({})), "");
  EXPECT_EQ(words(table.append(rows_of(1, 8, table.append_rows_max() + 1))),
            "more rows than one append takes");
  std::vector<float> nan = rows_of(1, 8, 2);
  nan[13] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(words(table.append(nan)).find("row 1, column 5"), std::string::npos);
  EXPECT_EQ(words(table.replace(10, rows_of(1, 8))), "row 10 is not below the table's rows");
  const std::vector<std::uint32_t> ids = {3, 10};
  const std::vector<std::uint32_t> first = {0};
  const auto refused = table.reduce(Reduction::sum, {ids, first});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error, (Error{Code::invalid_argument, 0, 10}));
  EXPECT_EQ(refused.error().words, "id 10 at place 1 is not below the table's 10 rows");
  const std::vector<std::uint32_t> too_far = {0, 3};
  EXPECT_EQ(words(table.reduce(Reduction::sum, {ids, too_far})),
            "offset 1 is above the number of ids");
  EXPECT_EQ(table.stats()->rows, 10u);
}

// A table that is larger than memory: the append that finds none is refused, and does nothing.
TEST_P(EmbeddingsInLittleMemory, AnAppendThatFindsNoneIsRefused) {
  EmbeddingTable table = make("t", {64, EmbeddingType::fp32});
  const std::size_t some = table.append_rows_max();
  std::uint32_t appended = 0;
  TableError refused;
  for (float value = 1; refused.error.code == Code::invalid; ++value) {
    const auto done = table.append(rows_of(value, 64, some));
    if (!done) {
      refused = done.error();
      continue;
    }
    EXPECT_EQ(*done, appended);
    appended += static_cast<std::uint32_t>(some);
    ASSERT_LE(std::uint64_t{appended} * table.row_bytes(), memory_bytes_);
  }
  EXPECT_EQ(refused.error.code, Code::out_of_memory);
  EXPECT_NE(message(refused).find("The memory limit is reached and nothing was changed"),
            std::string::npos)
      << message(refused);
  ASSERT_GE(appended, 8 * some);
  EXPECT_EQ(table.stats()->rows, appended);
  const std::uint32_t ids[] = {0, appended - 1};
  const std::uint32_t first[] = {0};
  const float last = static_cast<float>(appended / some);
  EXPECT_EQ(table.reduce(Reduction::sum, {ids, first}).value(), rows_of(1 + last, 64));
  ASSERT_TRUE(table.replace(0, rows_of(2, 64))) << "it takes none";
  EXPECT_EQ(table.reduce(Reduction::sum, {ids, first}).value(), rows_of(2 + last, 64));
  EXPECT_EQ(audit("t"), std::vector<std::string>{});
}

// More bags than one answer has room for, and a bag of more ids than one request among them.
TEST_P(EmbeddingsOverEachWay, TakeLongRequestsInParts) {
  EmbeddingTable table = make("t", {64, EmbeddingType::fp32});
  std::vector<float> rows;
  for (int row = 0; row < 100; ++row) {
    const auto of_one = rows_of(static_cast<float>(row), 64);
    rows.insert(rows.end(), of_one.begin(), of_one.end());
  }
  ASSERT_TRUE(table.append(rows));
  const std::uint64_t seed = seed_from_environment(4711);
  SCOPED_TRACE(seed_text(seed));
  base::Random random(seed);
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> offsets;
  std::vector<float> wanted;
  for (int bag = 0; bag < 3000; ++bag) {
    offsets.push_back(static_cast<std::uint32_t>(ids.size()));
    const std::uint64_t length = bag == 1500 ? 300'000 : random.below(20);
    float sum = 0;
    for (std::uint64_t i = 0; i < length; ++i) {
      ids.push_back(static_cast<std::uint32_t>(bag == 1500 ? i % 2 : random.below(100)));
      sum += static_cast<float>(ids.back());
    }
    wanted.insert(wanted.end(), 64, sum);
  }
  const auto found = table.reduce(Reduction::sum, {ids, offsets});
  ASSERT_TRUE(found) << message(found.error());
  EXPECT_EQ(*found, wanted);
}

/// Bags of several tables, of any types and dimensions, one of which has groups.
class EmbeddingsOfSeveralTables : public EmbeddingsOverEachWay {
 protected:
  static constexpr std::uint32_t kTables = 7;
  static constexpr std::uint32_t kGrouped = 2;  // this one has

  void SetUp() override {
    EmbeddingsOverEachWay::SetUp();
    for (std::uint32_t t = 0; t < kTables; ++t) {
      const std::uint32_t dimension = 8 * (1 + t % 3);
      tables_.push_back(make("t" + std::to_string(t), {dimension, EmbeddingType(1 + t % 4)}));
      for (int row = 0; row < 50; ++row) {
        const auto value = static_cast<float>(random_.below(9));
        ASSERT_TRUE(tables_.back().append(rows_of(value, dimension)));
      }
      // One has so many bags that they go in requests of their own, and one has none.
      draw_bags(t, t == 3 ? 9000 : t == 5 ? 0 : 20);
      vectors_.push_back(rows_of(0.5, dimension));
    }
    const std::uint8_t sizes[] = {2};
    const std::uint32_t grouped[] = {3, 4};
    ASSERT_TRUE(tables_[kGrouped].group({sizes, grouped}));
  }
  void draw_bags(std::uint32_t t, std::uint32_t bags) {
    for (std::uint32_t bag = 0; bag < bags; ++bag) {
      offsets_[t].push_back(static_cast<std::uint32_t>(ids_[t].size()));
      for (std::uint64_t i = random_.below(80); i != 0; --i) {
        ids_[t].push_back(static_cast<std::uint32_t>(random_.below(50)));
        weights_[t].push_back(static_cast<float>(random_.below(9)) / 4 - 1);
      }
    }
  }
  /// What is asked of all of them.
  [[nodiscard]] std::vector<TableBags> bags_for(Reduction reduction, bool weighted) const {
    const bool product = reduction == Reduction::inner_product;
    std::vector<TableBags> asked;
    for (std::uint32_t t = 0; t < kTables; ++t) {
      const std::span<const float> vector = product ? vectors_[t] : std::span<const float>{};
      const std::span<const float> factors = weighted ? weights_[t] : std::span<const float>{};
      asked.push_back({tables_[t], {ids_[t], offsets_[t], factors}, vector});
    }
    return asked;
  }
  /// As if each were asked alone; and again with ids of one table in the numbers of its groups.
  void expect_as_alone(Reduction reduction, bool weighted) const {
    std::vector<TableBags> asked = bags_for(reduction, weighted);
    std::vector<float> wanted;
    for (const TableBags& of : asked) {
      const auto alone = of.table.reduce(reduction, of.bags, of.vector);
      ASSERT_TRUE(alone) << message(alone.error());
      wanted.insert(wanted.end(), alone->begin(), alone->end());
    }
    std::vector<std::uint32_t> numbered = ids_[kGrouped];
    const auto grouping = tables_[kGrouped].renumber(numbered);
    ASSERT_TRUE(grouping) << message(grouping.error());
    for (const bool renumbered : {false, true}) {
      if (renumbered) {
        asked[kGrouped].bags.ids = numbered;
        asked[kGrouped].bags.grouping = *grouping;
      }
      const auto found = EmbeddingTable::reduce_tables(reduction, asked);
      ASSERT_TRUE(found) << message(found.error());
      EXPECT_EQ(*found, wanted) << static_cast<int>(reduction) << weighted << renumbered;
    }
  }

  const std::uint64_t seed_ = seed_from_environment(4712);
  base::Random random_{seed_};
  std::vector<EmbeddingTable> tables_;
  std::array<std::vector<std::uint32_t>, kTables> ids_;
  std::array<std::vector<std::uint32_t>, kTables> offsets_;
  std::array<std::vector<float>, kTables> weights_;
  std::vector<std::vector<float>> vectors_;
};

TEST_P(EmbeddingsOfSeveralTables, AreReducedAsIfEachWereAskedAlone) {
  SCOPED_TRACE(seed_text(seed_));
  for (const Reduction reduction : {Reduction::sum, Reduction::inner_product}) {
    ASSERT_NO_FATAL_FAILURE(expect_as_alone(reduction, true));
  }
  for (const Reduction reduction : {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min,
                                    Reduction::inner_product}) {
    ASSERT_NO_FATAL_FAILURE(expect_as_alone(reduction, false));
  }
  EXPECT_EQ(EmbeddingTable::reduce_tables(Reduction::sum, {}).value(), std::vector<float>{});
}

TEST_P(EmbeddingsOfSeveralTables, SayWhichTableIsWrong) {
  SCOPED_TRACE(seed_text(seed_));
  std::vector<TableBags> asked = bags_for(Reduction::inner_product, false);
  const auto refused = [&] {
    const auto found = EmbeddingTable::reduce_tables(Reduction::inner_product, asked);
    EXPECT_FALSE(found);
    return found ? TableError{} : found.error();
  };
  ids_[6].back() = 50;
  EXPECT_EQ(refused().error, (Error{Code::invalid_argument, 0, 50}));
  EXPECT_EQ(refused().words, "t6: id 50 at place " + std::to_string(ids_[6].size() - 1) +
                                 " is not below the table's 50 rows");
  ids_[6].back() = 0;
  offsets_[1][0] = 1;
  EXPECT_EQ(refused().words, "t1: the first offset is not 0");
  offsets_[1][0] = 0;
  asked[4].vector = {};
  EXPECT_EQ(refused().words, "t4: the vector has not as many values as a row");
  asked[4].vector = vectors_[4];
  asked[4].bags.weights = std::span(weights_[4]).first(1);
  EXPECT_EQ(refused().words, "t4: there are not as many weights as ids");
  asked[4].bags.weights = {};
  asked[kGrouped].bags.grouping = 1;
  EXPECT_EQ(refused().error.code, Code::outdated);
  asked[kGrouped].bags.grouping = 0;
  ASSERT_TRUE(store_->drop_embedding_table("t6"));
  EXPECT_EQ(refused().error.code, Code::not_found);
}

TEST_P(EmbeddingsOverEachWay, RowsAreWholeWhileTheyAreReplaced) {
  EmbeddingTable table = make("t", {64, EmbeddingType::fp32});
  ASSERT_TRUE(table.append(rows_of(0, 64, 4)));
  std::atomic<bool> over{false};
  std::jthread writer([&] {
    for (int i = 0; i < 300; ++i) {
      EXPECT_TRUE(
          table.replace(static_cast<std::uint64_t>(i) % 4, rows_of(static_cast<float>(i), 64)));
    }
    over = true;
  });
  const std::vector<std::uint32_t> ids = {0, 1, 2, 3, 3, 2, 1, 0};
  const std::vector<std::uint32_t> offsets = {0, 1, 4};
  bool whole = true;
  do {
    const auto found = table.reduce(Reduction::sum, {ids, offsets});
    ASSERT_TRUE(found) << message(found.error());
    for (std::size_t i = 0; i < found->size(); ++i) {
      whole &= (*found)[i] == (*found)[i / 64 * 64];
    }
  } while (!over);
  writer.join();
  EXPECT_TRUE(whole);
  EXPECT_EQ(audit("t"), std::vector<std::string>{});
}

TEST_P(EmbeddingsOfANode, HostileRequestsAreRefused) {
  EmbeddingTable table = make("t", {8, EmbeddingType::fp32});
  ASSERT_TRUE(table.append(rows_of(1, 8)));
  const std::uint32_t id = channel::list(channel(), ObjectKind::embedding)->front().id;
  const auto code = [&](const auto& request) {
    const wire::RequestMessage<std::remove_cvref_t<decltype(request)>> message(request);
    const auto answer = channel().ask(message.get());
    EXPECT_FALSE(answer);
    return answer ? Code::invalid : answer.error().error.code;
  };
  embedding_calls::Create create{"x", {8, 1, {}}};
  create.shape.reserved[10] = 1;
  EXPECT_EQ(code(create), Code::invalid_argument);
  EXPECT_EQ(code(embedding_calls::Append{id, "abc"}), Code::invalid_argument);
  EXPECT_EQ(code(embedding_calls::Replace{id, ~std::uint64_t{0}, std::string(32, 'r')}),
            Code::invalid_argument);
  const auto reduce = [&](embedding::ReduceShape shape, std::string_view ids = "") {
    embedding_calls::Reduce asked;
    asked.table = id;
    asked.shape = shape;
    asked.ids = ids;
    return code(asked);
  };
  EXPECT_EQ(reduce({1, {1, 0, 0}, 0, 0, 0, 0, 0}), Code::invalid_argument);
  EXPECT_EQ(reduce({1, {}, 0, 0, 0, 0, 1}), Code::outdated) << "there are no groups";
  EXPECT_EQ(reduce({0, {}, 0, 0, 0, 0, 0}), Code::invalid_argument);
  EXPECT_EQ(reduce({1, {}, 0, 0, ~0u, 0, 0}), Code::invalid_argument) << "of which there are none";
  EXPECT_EQ(reduce({1, {}, ~0u, ~0u, ~0u, ~0u, 0}), Code::invalid_argument);
  EXPECT_EQ(reduce({1, {}, 0, 0, 1, 0, 0}, "idid"), Code::invalid_argument) << "no bag";
  EXPECT_EQ(code(embedding_calls::Group{id, {1, 2}, "12345678", ""}), Code::invalid_argument);
  EXPECT_EQ(code(embedding_calls::Group{id, {~0u, ~0u}, "", ""}), Code::invalid_argument);
  EXPECT_EQ(code(embedding_calls::Group{id, {1, 1}, std::string(4, '\0'), "\1"}),
            Code::invalid_argument);
  EXPECT_EQ(code(embedding_calls::Renumber{id, "abcde"}), Code::invalid_argument);
  const std::string ones(std::size_t{4} * 100'000, '\1');  // offsets are not checked
  embedding_calls::Reduce many;
  many.table = id;
  many.shape.reduction = 1;
  many.shape.bags = 100'000;
  many.offsets = ones;
  const wire::RequestMessage<embedding_calls::Reduce> too_many(many);
  const auto refused = channel().ask(too_many.get());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error.code, Code::invalid_argument);
  EXPECT_EQ(refused.error().words, "fewer bags: an answer has at most 256 KiB");
  EXPECT_EQ(table.stats()->rows, 1u);
  EXPECT_EQ(audit("t"), std::vector<std::string>{});
}

TEST_P(EmbeddingsOfANode, HostileRequestsOfSeveralTablesAreRefused) {
  EmbeddingTable table = make("t", {8, EmbeddingType::fp32});
  ASSERT_TRUE(table.append(rows_of(1, 8)));
  const std::uint32_t id = channel::list(channel(), ObjectKind::embedding)->front().id;
  const auto code = [&](const embedding_calls::ReduceTables& request) {
    const wire::RequestMessage<embedding_calls::ReduceTables> message(request);
    const auto answer = channel().ask(message.get());
    EXPECT_FALSE(answer);
    return answer ? Code::invalid : answer.error().error.code;
  };
  const auto of_tables = [&](embedding::TablesShape shape, std::vector<embedding::TableShape> of,
                             std::string_view data) {
    embedding_calls::ReduceTables asked;
    asked.first = id;
    asked.shape = shape;
    std::string tables;
    for (const embedding::TableShape& one : of) tables += base::bytes_of(one);
    asked.tables = tables;
    asked.data = data;
    return code(asked);
  };
  const std::string_view word("\0\0\0\0\0\0\0\0", 8);
  const embedding::TableShape good{0, 0, 1, 1, 0, 0};
  EXPECT_EQ(of_tables({1, {}, 0}, {}, ""), Code::invalid_argument);
  EXPECT_EQ(of_tables({1, {}, 2}, {good}, word), Code::invalid_argument);
  EXPECT_EQ(of_tables({1, {0, 1, 0}, 1}, {good}, word), Code::invalid_argument);
  EXPECT_EQ(of_tables({9, {}, 1}, {good}, word), Code::invalid_argument);
  EXPECT_EQ(of_tables({1, {}, 1}, {{id, 0, 1, 1, 0, 0}}, word), Code::invalid_argument);
  EXPECT_EQ(of_tables({1, {}, 1}, {good}, word.substr(0, 7)), Code::invalid_argument);
  EXPECT_EQ(of_tables({1, {}, 1}, {good}, word.substr(0, 4)), Code::invalid_argument);
  EXPECT_EQ(of_tables({1, {}, 1}, {{0, 0, 1, 0, 0, 0}}, word), Code::invalid_argument);
  EXPECT_EQ(of_tables({1, {}, 1}, {{0, ~0u, ~0u, ~0u, ~0u, 0}}, word), Code::invalid_argument);
  EXPECT_EQ(of_tables({1, {}, 2}, {good, {id + 77, 0, 0, 0, 0, 0}}, word), Code::not_found);
  EXPECT_EQ(of_tables({1, {}, 2}, {good, {id, 0, 100'000, 0, 0, 0}}, std::string(400'008, '\0')),
            Code::invalid_argument)
      << "more than an answer has";
}

TEST_P(EmbeddingsOfANode, TellTheirSamples) {
  EmbeddingTable table = make("t", {8, EmbeddingType::fp32});
  ASSERT_TRUE(table.append(rows_of(1, 8)));
  wire::SamplesWanted wanted{};
  wanted.objects_max = 10;
  const auto sampled = channel::samples(channel(), wanted, "t");
  ASSERT_TRUE(sampled);
  ASSERT_EQ(sampled->objects.size(), 1u);
  bool rows = false;
  for (const wire::Sample& sample : sampled->objects.front().samples) {
    rows |= sample.name == "rows" && sample.value == 1;
  }
  EXPECT_TRUE(rows);
}

INSTANTIATE_TEST_SUITE_P(Ways, EmbeddingsOverEachWay,
                         ::testing::Values("embedded", "unix", "shm", "roce", "device",
                                           "shm_one_sided"),
                         way_name);
INSTANTIATE_TEST_SUITE_P(Ways, EmbeddingsOfSeveralTables,
                         ::testing::Values("embedded", "unix", "shm", "roce", "device",
                                           "shm_one_sided"),
                         way_name);
INSTANTIATE_TEST_SUITE_P(Ways, EmbeddingsOfANode, ::testing::Values("unix", "device"), way_name);
INSTANTIATE_TEST_SUITE_P(Ways, EmbeddingsInLittleMemory,
                         ::testing::Values("embedded", "unix", "roce", "device"), way_name);

// Impossible answers of an embedding table are refused.
TEST(EmbeddingCalls, ALyingNodeIsNotBelieved) {
  const auto believed = [](embedding::EmbeddingShape shape) {
    const embedding_calls::Opened opened{3, shape};
    const wire::ReplyMessage<embedding_calls::Opened> message(opened);
    return wire::read_reply<embedding_calls::Opened>(message.header(), message.payload())
        .has_value();
  };
  EXPECT_TRUE(believed({64, 1, {}}));
  EXPECT_FALSE(believed({63, 1, {}}));
  EXPECT_FALSE(believed({64, 0, {}}));
  const std::string too_long(embedding::kResultBytesMax + 1, 'x');
  EXPECT_FALSE(wire::read_reply<embedding_calls::Reduced>({}, too_long));
}

}  // namespace
}  // namespace espalier::test
