// SPDX-License-Identifier: Apache-2.0
// `espalier-bench inference`: bags of rows of an embedding table, reduced to their sums by one
// thread [RAMBDA §VI-D].
//
//   lines      no sums: random lines of as much memory, as the machine brings them at best
//   merci      rows in vectors of their own, sums in memory row by row, as MERCI has them
//   embedded   a table of this process
//   node       a table of a node, by rings
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/node_transport.hpp"
#include "bench/output.hpp"
#include "bench/point_run.hpp"
#include "espalier/embedding_types.hpp"

namespace espalier::bench {

enum class InferenceTarget : std::uint8_t { lines, merci, embedded, node };

[[nodiscard]] std::string_view name(InferenceTarget target);
[[nodiscard]] std::optional<InferenceTarget> parse_inference_target(std::string_view text);
[[nodiscard]] std::string_view name(EmbeddingType type);
[[nodiscard]] std::optional<EmbeddingType> parse_embedding_type(std::string_view text);

struct InferenceOptions : PointOptions {
  std::vector<InferenceTarget> targets{InferenceTarget::lines, InferenceTarget::merci,
                                       InferenceTarget::embedded, InferenceTarget::node};
  std::vector<EmbeddingType> types{EmbeddingType::fp32};  ///< merci has fp32 alone
  std::vector<std::uint32_t> lengths{50};                 ///< rows of a bag
  std::uint32_t rows = 1 << 20;
  std::uint32_t dimension = 64;
  std::uint32_t bags = 64;  ///< of one request
  NodeTransport transport = NodeTransport::unix_socket;
  std::uint64_t ops = 20'000;  ///< bags of a measurement
};

/// What is wrong with the options, in one sentence; nothing if all is well.
std::optional<std::string> problem_of(const InferenceOptions& options);

/// Returns what main should: 1 if sums differed.
/// Errors: throws std::runtime_error or std::bad_alloc.
int run_inference(const InferenceOptions& options, const Output& output);

}  // namespace espalier::bench
