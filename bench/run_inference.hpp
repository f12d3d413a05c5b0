// SPDX-License-Identifier: Apache-2.0
// `espalier-bench inference`: bags of rows of an embedding table, reduced to their sums by
// some threads [RAMBDA §VI-D].
//
//   lines      no sums: random lines of as much memory, as the machine brings them at best
//   merci      rows in vectors of their own, sums in memory row by row, as MERCI has them
//   embedded   a table of this process
//   node       a table of a node, by rings, one request at a time
//   node-many  the same with several requests on their way (EmbeddingTable::reduce_many)
//   noop       no sums: as many requests without work
//   reads      a table of a node, whose rows the client READs, over shm or roce
//   parse      no sums: the queries as text of a model's, and what a helper makes of it; in
//              processor time, waking the helper included
//   model      a ranking model over a table of this process, eight bags of each query
//   model-node likewise of a node, by rings
//
// With a category of reviews queries are its held-out lists, and besides:
//
//   merci-grouped   sums of groups as MERCI reads them
//   grouped         the table of this process, with groups
//   grouped-node    that of the node, with groups
//   renumbered      as grouped, of ids that were renumbered and sorted before, as MERCI has them
//   renumbered-node likewise of the node
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/node_transport.hpp"
#include "bench/point_options.hpp"
#include "espalier/embedding_types.hpp"

namespace espalier::bench {

enum class InferenceTarget : std::uint8_t {
  lines,
  merci,
  embedded,
  node,
  node_many,
  noop,
  reads,
  parse,
  model,
  model_node,
  merci_grouped,
  grouped,
  grouped_node,
  renumbered,
  renumbered_node
};

[[nodiscard]] std::string_view name(InferenceTarget target);
[[nodiscard]] std::optional<InferenceTarget> parse_inference_target(std::string_view text);
[[nodiscard]] std::string_view name(EmbeddingType type);
[[nodiscard]] std::optional<EmbeddingType> parse_embedding_type(std::string_view text);

struct InferenceOptions : PointOptions {
  static constexpr const char* kBench = "inference";
  static constexpr const char* kSummary = "bags of rows of an embedding table, reduced to sums";

  std::vector<InferenceTarget> targets{InferenceTarget::lines,          InferenceTarget::merci,
                                       InferenceTarget::embedded,       InferenceTarget::node,
                                       InferenceTarget::merci_grouped,  InferenceTarget::grouped,
                                       InferenceTarget::grouped_node,   InferenceTarget::renumbered,
                                       InferenceTarget::renumbered_node};
  std::vector<EmbeddingType> types{EmbeddingType::fp32};  ///< merci has fp32 alone
  std::vector<std::uint32_t> lengths{50};                 ///< rows of a bag
  std::uint32_t rows = 1 << 20;
  std::vector<std::string> categories{};  ///< of reviews: in place of rows and lengths, or `all`
  double scale = 1;                       ///< of its items
  std::vector<double> ratios{0.25};       ///< memory of groups, in parts of the rows'
  std::uint32_t dimension = 64;
  std::uint32_t bags = 64;                   ///< of one request; of a model so many queries
  std::vector<std::uint32_t> threads = {1};  ///< that reduce; lines, parse and models have one
  std::uint32_t in_flight = 32;              ///< requests in flight: node-many, noop
  NodeTransport transport = NodeTransport::unix_socket;
  std::uint64_t ops = 20'000;  ///< bags of a measurement

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench
