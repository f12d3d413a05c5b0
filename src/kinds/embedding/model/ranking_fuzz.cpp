// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of a ranking model, or as queries of one: they are refused in words, or what
// was read is what the networks and the tables take.
//
// The first byte chooses between a file, text and words.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kinds/embedding/model/model_queries.hpp"

namespace espalier::embedding {
namespace {

void want_whole(bool holds) {
  if (!holds) std::abort();
}

void read_as_plan(std::string_view file) {
  const auto plan = read_model_plan(file);
  if (!plan) return want_whole(!plan.error().empty());
  const auto tables = static_cast<std::uint32_t>(plan->tables.size());
  want_whole(plan->bottom.front().inputs == plan->dense);
  want_whole(plan->bottom.back().outputs == plan->dimension);
  want_whole(plan->top.front().inputs == plan->dimension + interaction_pairs(tables));
  std::size_t floats = 0;
  for (const auto* layers : {&plan->bottom, &plan->top}) {
    for (const LayerShape& layer : *layers) floats += (layer.inputs + 1ul) * layer.outputs;
  }
  want_whole(plan->floats_at + 4 * floats == file.size());
}

void want_queries(const ModelShape& shape, const std::expected<ModelQueries, std::string>& read) {
  if (!read) return want_whole(!read.error().empty());
  want_whole(read->queries <= kQueriesMax);
  want_whole(read->dense.size() == std::size_t{read->queries} * shape.dense);
  want_whole(read->tables.size() == shape.tables);
  for (const ModelQueries::Bags& bags : read->tables) {
    want_whole(bags.offsets.size() == read->queries);
  }
}

void run_on(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ModelShape shape{2, 2, 8, 1};
  switch (data[0] % 3) {
    case 0: return read_as_plan(bytes);
    case 1: return want_queries(shape, parse_queries(shape, bytes));
    default: return want_queries(shape, read_queries(shape, data[0] / 3u, bytes));
  }
}

}  // namespace
}  // namespace espalier::embedding

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::embedding::run_on(data, size);
  return 0;
}
