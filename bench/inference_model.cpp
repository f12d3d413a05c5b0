// SPDX-License-Identifier: Apache-2.0
#include "bench/inference_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "kinds/embedding/model/model_format.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint32_t kDenseFeatures = 512;

std::vector<std::uint32_t> bottom_widths(std::uint32_t dimension) { return {512, dimension}; }
const std::vector<std::uint32_t> kTopWidths = {1024, 1024, 1024, 1};

/// Weights of a layer and its biases, so small that ranks are neither 0 nor 1.
void add_layer(std::string& file, std::uint32_t inputs, std::uint32_t outputs,
               base::Random& random) {
  const float scale = 1 / std::sqrt(static_cast<float>(inputs));
  for (std::uint64_t i = 0; i < (std::uint64_t{inputs} + 1) * outputs; ++i) {
    const float weight = (static_cast<float>(random() >> 40) * 0x1p-23F - 1) * scale;
    file += base::bytes_of(std::bit_cast<std::uint32_t>(weight));
  }
}

std::string model_file(std::string_view table, std::uint32_t dimension) {
  const auto bottom = bottom_widths(dimension);
  embedding::ModelHeader header{};
  header.magic = embedding::kModelMagic;
  header.format = embedding::kModelFormat;
  header.dense = kDenseFeatures;
  header.dimension = dimension;
  header.tables = kModelBags;
  header.bottom = static_cast<std::uint32_t>(bottom.size());
  header.top = static_cast<std::uint32_t>(kTopWidths.size());
  header.reduction = static_cast<std::uint32_t>(Reduction::mean);
  std::string file(base::bytes_of(header));
  for (const auto* widths : {&bottom, &kTopWidths}) {
    for (const std::uint32_t width : *widths) file += base::bytes_of(width);
  }
  for (std::uint32_t i = 0; i < kModelBags; ++i) {
    file += base::bytes_of(static_cast<std::uint32_t>(table.size()));
    file += table;
  }
  file.resize(base::round_up(file.size(), std::size_t{8}));
  base::Random random(kDenseFeatures);
  std::uint32_t inputs = kDenseFeatures;
  for (const std::uint32_t width : bottom) {
    add_layer(file, std::exchange(inputs, width), width, random);
  }
  inputs = dimension + embedding::interaction_pairs(kModelBags);
  for (const std::uint32_t width : kTopWidths) {
    add_layer(file, std::exchange(inputs, width), width, random);
  }
  return file;
}

/// Features of queries from -1 up to 1.
std::vector<float> dense_features(std::uint64_t queries) {
  base::Random random(queries);
  std::vector<float> features(queries * kDenseFeatures);
  for (float& feature : features) feature = static_cast<float>(random() >> 40) * 0x1p-23F - 1;
  return features;
}

}  // namespace

std::uint64_t model_query_bytes(std::uint64_t queries, std::uint64_t length) {
  return queries * (kDenseFeatures + kModelBags * (length + 1)) * sizeof(float);
}

RankingModel make_bench_model(Store& store, std::string_view table, std::uint32_t dimension) {
  auto made = store.create_ranking_model("model", model_file(table, dimension));
  if (!made) throw std::runtime_error("cannot make a model: " + message(made.error()));
  return *std::move(made);
}

// A request's bags of one table follow those of the table before.
PointSample rank_queries(const RankingModel& model, const QuerySet& bags,
                         std::uint32_t queries_of_request) {
  const std::uint64_t queries = bags.ends.size() / kModelBags;
  const std::vector<float> dense = dense_features(queries_of_request);
  std::vector<std::vector<std::uint32_t>> offsets(kModelBags);
  std::vector<EmbeddingBags> tables(kModelBags);
  PointSample sample;
  const base::Stopwatch all;
  for (std::uint64_t query = 0; query < queries; query += queries_of_request) {
    const std::uint64_t count = std::min<std::uint64_t>(queries_of_request, queries - query);
    const base::Stopwatch watch;
    for (std::uint32_t table = 0; table < kModelBags; ++table) {
      const std::uint64_t first = query * kModelBags + table * count;
      const std::uint64_t begin = bags.begin(first);
      offsets[table].clear();
      for (std::uint64_t i = first; i < first + count; ++i) {
        offsets[table].push_back(static_cast<std::uint32_t>(bags.begin(i) - begin));
      }
      tables[table] = {std::span(bags.ids).subspan(begin, bags.ends[first + count - 1] - begin),
                       offsets[table]};
    }
    const auto ranks =
        model.infer({std::span(dense).first(count * kDenseFeatures), std::span(tables)});
    if (!ranks) throw std::runtime_error("cannot rank queries: " + message(ranks.error()));
    sample.latencies.record(watch.elapsed_ns());
    sample.checksum += static_cast<std::uint64_t>(
        std::ranges::count_if(*ranks, [](float rank) { return rank > 0 && rank < 1; }));
  }
  sample.took(queries, static_cast<double>(all.elapsed_ns()) * 1e-9);
  return sample;
}

}  // namespace espalier::bench
