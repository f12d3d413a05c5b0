// SPDX-License-Identifier: Apache-2.0
// Reductions and ranks against NumPy's results for the same numbers, in double precision
// (numpy/make_reference.py): in this process and on a node, by rows alone and with groups, within
// the error bounds of docs/embedding.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "espalier/embedding_table.hpp"
#include "espalier/ranking_model.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {
namespace {

const std::string kFolder = ESPALIER_SOURCE_DIR "/tests/embedding_tables/numpy/";

/// A line: a word, and what follows it.
struct Line {
  std::string word;
  std::vector<std::string> rest;

  [[nodiscard]] std::vector<double> doubles() const {
    std::vector<double> all;
    for (const std::string& text : rest) all.push_back(std::strtod(text.c_str(), nullptr));
    return all;
  }
  [[nodiscard]] std::vector<float> floats() const {
    std::vector<float> all;
    for (const double value : doubles()) all.push_back(static_cast<float>(value));
    return all;
  }
  [[nodiscard]] std::vector<std::uint32_t> numbers() const {
    std::vector<std::uint32_t> all;
    for (const std::string& text : rest) {
      all.push_back(static_cast<std::uint32_t>(std::strtoul(text.c_str(), nullptr, 10)));
    }
    return all;
  }
};

std::vector<Line> lines_of(const std::string& name) {
  std::ifstream file(kFolder + name);
  std::vector<Line> lines;
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    Line line;
    words >> line.word;
    for (std::string each; words >> each;) line.rest.push_back(each);
    lines.push_back(std::move(line));
  }
  return lines;
}

const std::map<std::string, EmbeddingType> kTypes = {{"fp32", EmbeddingType::fp32},
                                                     {"fp16", EmbeddingType::fp16},
                                                     {"bf16", EmbeddingType::bf16},
                                                     {"int8", EmbeddingType::int8}};
const std::map<std::string, Reduction> kReductions = {{"sum", Reduction::sum},
                                                      {"mean", Reduction::mean},
                                                      {"max", Reduction::max},
                                                      {"min", Reduction::min},
                                                      {"inner_product", Reduction::inner_product}};

/// "embedded" or "unix".
class NumpyReference : public NodeFixture, public ::testing::WithParamInterface<const char*> {
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

  std::optional<Store> store_;
};

/// How far a value may be off by which sums are made of rows of a type: each value is within a
/// step of the one that was given, which is a 255th of a row's range, and rounded to fp16.
double step_of(EmbeddingType type) { return type == EmbeddingType::int8 ? 6.0 / 255 * 1.2 : 0; }

struct Case {
  Reduction reduction = Reduction::sum;
  std::vector<std::uint32_t> ids, offsets;
  std::vector<float> weights, vector;
  std::vector<double> wanted, magnitudes;
};

/// Returns how many values were compared.
std::size_t compare(const EmbeddingTable& table, const Case& of) {
  const auto found = table.reduce(of.reduction, {of.ids, of.offsets, of.weights}, of.vector);
  if (!found) {
    ADD_FAILURE() << message(found.error());
    return 0;
  }
  EXPECT_EQ(found->size(), of.wanted.size());
  const std::size_t width = found->size() / of.offsets.size();
  const double step = step_of(table.options().type);
  const double weight = of.weights.empty() ? 1 : 2;  // they are from -2 to 2
  const double products = of.vector.empty() ? 1 : static_cast<double>(of.vector.size());
  for (std::size_t i = 0; i < found->size(); ++i) {
    const std::size_t bag = i / width;
    const std::size_t end = bag + 1 < of.offsets.size() ? of.offsets[bag + 1] : of.ids.size();
    const auto rows = static_cast<double>(end - of.offsets[bag]);
    const bool sums = of.reduction == Reduction::sum || of.reduction == Reduction::inner_product;
    const double rounding = (rows + products + 1) * 0x1p-23 * of.magnitudes[i];
    const double bound = rounding + step * (sums ? rows * weight * products : 1);
    EXPECT_LE(std::abs(double{(*found)[i]} - of.wanted[i]), bound) << "bag " << bag;
  }
  return found->size();
}

TEST_P(NumpyReference, ReductionsAreThoseOfNumPy) {
  const std::vector<Line> lines = lines_of("bags.data");
  std::optional<EmbeddingTable> table;
  std::optional<EmbeddingTable> grouped;
  std::size_t compared = 0;
  Case now;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    SCOPED_TRACE(std::to_string(i + 1));
    if (line.word == "table") {
      const EmbeddingOptions options{static_cast<std::uint32_t>(std::stoul(line.rest[1])),
                                     kTypes.at(line.rest[0])};
      table = *store_->create_embedding_table("plain" + std::to_string(i), options);
      grouped = *store_->create_embedding_table("grouped" + std::to_string(i), options);
    } else if (line.word == "rows") {
      ASSERT_TRUE(table->append(line.floats()));
      ASSERT_TRUE(grouped->append(line.floats()));
      const std::vector<std::uint8_t> sizes = {3, 4, 2};
      const std::vector<std::uint32_t> rows = {7, 0, 3, 15, 1, 2, 9, 4, 5};
      ASSERT_TRUE(grouped->group({sizes, rows}));
    } else if (line.word == "case") {
      now = Case();
      now.reduction = kReductions.at(line.rest[0]);
    } else if (line.word == "ids") {
      now.ids = line.numbers();
    } else if (line.word == "offsets") {
      now.offsets = line.numbers();
    } else if (line.word == "weights") {
      now.weights = line.floats();
    } else if (line.word == "vector") {
      now.vector = line.floats();
    } else if (line.word == "wanted") {
      now.wanted = line.doubles();
    } else {
      now.magnitudes = line.doubles();
      compared += compare(*table, now) + compare(*grouped, now);
    }
  }
  EXPECT_GT(compared, 2000u) << "the file is not there, or is another one";
  EXPECT_GT(grouped->stats()->rows_saved, 0u) << "sums of groups have stood for rows";
}

/// Queries, and what NumPy makes of them with sums of rows.
struct RankedQueries {
  static constexpr std::uint32_t kTables = 3;

  RankedQueries() : ids(kTables), offsets(kTables) {
    std::uint32_t table = 0;
    for (const Line& line : lines_of("ranks.data")) {
      if (line.word == "features") {
        const std::vector<float> of_one = line.floats();
        dense.insert(dense.end(), of_one.begin(), of_one.end());
        table = 0;
        text.precision(9);  // by which a float is the same one
        for (const float value : of_one) text << value << ' ';
      } else if (line.word == "ids") {
        const std::vector<std::uint32_t> bag = line.numbers();
        offsets.at(table).push_back(static_cast<std::uint32_t>(ids[table].size()));
        ids[table].insert(ids[table].end(), bag.begin(), bag.end());
        ++table;
        text << '|';
        for (const std::uint32_t id : bag) text << ' ' << id;
        if (table == kTables) text << '\n';
      } else {
        wanted.push_back(line.doubles().at(0));
      }
    }
  }
  [[nodiscard]] std::vector<EmbeddingBags> bags() const {
    std::vector<EmbeddingBags> all;
    for (std::uint32_t i = 0; i < kTables; ++i) all.push_back({ids[i], offsets[i]});
    return all;
  }

  std::vector<float> dense;
  std::vector<std::vector<std::uint32_t>> ids, offsets;
  std::vector<double> wanted;
  std::ostringstream text;
};

/// The state that NumPy has saved, as the script converts it: the model's file, and its tables'
/// rows.
struct ConvertedState {
  static constexpr std::uint32_t kColumns = 8;

  explicit ConvertedState(const std::string& options) {
    const std::string path = (folder / "model").string();
    const std::string command = "python3 " ESPALIER_SOURCE_DIR "/scripts/dlrm_to_espalier.py '" +
                                kFolder + "state.npz' '" + path + "' --rows '" +
                                (folder / "rows").string() + "' " + options;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    file = bytes_of_file(path);
    for (std::uint32_t i = 0; i < RankedQueries::kTables; ++i) {
      const std::string bytes =
          bytes_of_file((folder / "rows" / ("emb_" + std::to_string(i) + ".npy")).string());
      std::vector<float>& of_table = rows.emplace_back(std::size_t{16} * kColumns);
      const std::size_t wanted = of_table.size() * sizeof(float);
      EXPECT_GT(bytes.size(), wanted);
      if (bytes.size() < wanted) continue;
      std::memcpy(of_table.data(), bytes.data() + bytes.size() - wanted, wanted);
    }
    parts.dense = 5;
    parts.bottom = {16, 8};
    parts.top = {24, 1};
    parts.tables = {"emb_0", "emb_1", "emb_2"};
    parts.floats.resize(5 * 16 + 16 + 16 * 8 + 8 + 14 * 24 + 24 + 24 + 1);
    const std::size_t floats = parts.floats.size() * sizeof(float);
    EXPECT_GT(file.size(), floats);
    if (file.size() > floats) {
      std::memcpy(parts.floats.data(), file.data() + file.size() - floats, floats);
    }
  }
  static std::string bytes_of_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Ranks in double precision, and how far single precision may be from them: each layer of n
  /// inputs, and each product of n values, (n + 1) / 2^23 of the sum of the magnitudes.
  [[nodiscard]] std::vector<embedding::Bounded> ranks_of(const RankedQueries& queries) const {
    std::vector<embedding::Bounded> all;
    for (std::size_t q = 0; q < queries.wanted.size(); ++q) {
      std::vector<std::vector<embedding::Bounded>> pooled;
      for (std::uint32_t t = 0; t < RankedQueries::kTables; ++t) {
        pooled.push_back(pool_of(queries, t, q));
      }
      const auto ranks = embedding::rank_plainly(
          parts, std::span(queries.dense).subspan(q * parts.dense, parts.dense), pooled);
      all.insert(all.end(), ranks.begin(), ranks.end());
    }
    return all;
  }
  [[nodiscard]] std::vector<embedding::Bounded> pool_of(const RankedQueries& queries,
                                                        std::uint32_t t, std::size_t q) const {
    const auto& offsets = queries.offsets[t];
    const std::size_t end = q + 1 < offsets.size() ? offsets[q + 1] : queries.ids[t].size();
    const auto count = static_cast<double>(end - offsets[q]);
    std::vector<embedding::Bounded> sums(kColumns);
    for (std::size_t i = offsets[q]; i < end; ++i) {
      for (std::uint32_t c = 0; c < kColumns; ++c) {
        const double value = rows[t][queries.ids[t][i] * kColumns + c];
        sums[c].value += value;
        sums[c].error += std::abs(value) * count * 0x1p-23;
      }
    }
    if (parts.reduction == Reduction::mean && count != 0) {
      for (embedding::Bounded& sum : sums) sum = {sum.value / count, sum.error / count};
    }
    return sums;
  }

  base::TemporaryFolder folder;
  embedding::RankingParts parts;
  std::string file;
  std::vector<std::vector<float>> rows;
};

/// Makes tables and a model of a state, and ranks queries given as words and as text.
void expect_ranks_within_error(Store& store, const ConvertedState& state,
                               const RankedQueries& queries,
                               const std::vector<embedding::Bounded>& wanted) {
  for (std::uint32_t i = 0; i < RankedQueries::kTables; ++i) {
    auto table = store.create_embedding_table(state.parts.tables[i],
                                              {.dimension = ConvertedState::kColumns});
    ASSERT_TRUE(table);
    ASSERT_TRUE(table->append(state.rows[i]));
  }
  const auto model = store.create_ranking_model("model", state.file);
  ASSERT_TRUE(model) << message(model.error());
  const std::vector<EmbeddingBags> bags = queries.bags();
  for (const auto& ranks :
       {model->infer({queries.dense, bags}), model->infer_text(queries.text.str())}) {
    ASSERT_TRUE(ranks) << message(ranks.error());
    ASSERT_EQ(ranks->size(), wanted.size());
    for (std::size_t q = 0; q < wanted.size(); ++q) {
      EXPECT_NEAR((*ranks)[q], wanted[q].value, wanted[q].error) << q;
    }
  }
}

// By the script that converts a state which NumPy has saved.
TEST_P(NumpyReference, RanksAreThoseOfNumPy) {
  const ConvertedState state("");
  const RankedQueries queries;
  ASSERT_EQ(queries.wanted.size(), 12u);
  std::vector<embedding::Bounded> wanted = state.ranks_of(queries);
  ASSERT_EQ(wanted.size(), queries.wanted.size());
  for (std::size_t q = 0; q < wanted.size(); ++q) {
    // Both are in double precision.
    EXPECT_NEAR(wanted[q].value, queries.wanted[q], 1e-12) << q;
    EXPECT_LT(wanted[q].error, 0.01) << "the bound says something";
    wanted[q].value = queries.wanted[q];
  }
  const auto [least, most] = std::ranges::minmax(queries.wanted);
  EXPECT_GT(most - least, 0.1) << "ranks differ";
  expect_ranks_within_error(*store_, state, queries, wanted);
}

// By the form in double precision that agrees with NumPy where rows are summed.
TEST_P(NumpyReference, RanksOfMeansAreWithinTheStatedError) {
  ConvertedState state("--mean");
  const RankedQueries queries;
  const std::vector<embedding::Bounded> of_sums = state.ranks_of(queries);
  state.parts.reduction = Reduction::mean;
  const std::vector<embedding::Bounded> wanted = state.ranks_of(queries);
  double apart = 0;
  for (std::size_t q = 0; q < wanted.size(); ++q) {
    apart = std::max(apart, std::abs(wanted[q].value - of_sums[q].value));
  }
  EXPECT_GT(apart, 0.01) << "means are not sums";
  expect_ranks_within_error(*store_, state, queries, wanted);
}

INSTANTIATE_TEST_SUITE_P(Ways, NumpyReference, ::testing::Values("embedded", "unix"), way_name);

}  // namespace
}  // namespace espalier::test
