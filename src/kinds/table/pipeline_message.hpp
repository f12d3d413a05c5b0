// SPDX-License-Identifier: Apache-2.0
// Codec of a pipeline's message (kinds/table/format/pipeline.hpp).
//
// decode_pipeline() guarantees the form of a pipeline: lengths, kinds, reserved bytes, indices and
// depth are valid, and each node has one user. check_pipeline() checks it against a table's columns
// and types (kinds/table/pipeline.hpp).
//
// Thread: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/table/format/pipeline.hpp"

namespace espalier::table {

struct PipelineMessage {
  std::vector<wire::OperatorHeader> operators;
  std::vector<wire::ConstantValue> constants;
  std::vector<wire::ExpressionNode> nodes;
  std::vector<wire::PipelineItem> items;
  std::string heap;
};

/// The mistake in a pipeline, in words for people.
struct PipelineError {
  /// The mistake concerns the whole message, not an operator.
  static constexpr std::uint32_t kNoOperator = ~std::uint32_t{0};

  std::uint32_t operator_index = kNoOperator;
  std::string operator_name;
  std::string reason;

  /// E.g. "operator 2 (filter): text is compared with integer".
  [[nodiscard]] std::string message() const;
};

template <class T>
using PipelineResult = std::expected<T, PipelineError>;

/// Parses a message, from any bytes. Errors: any violation of the format.
[[nodiscard]] PipelineResult<PipelineMessage> decode_pipeline(std::span<const std::byte> bytes);

/// The message's bytes. Requires: counts within the format's limits.
[[nodiscard]] std::vector<std::byte> encode_pipeline(const PipelineMessage& message);
/// Their number, even if it exceeds the limit.
[[nodiscard]] std::size_t encoded_bytes(const PipelineMessage& message);

[[nodiscard]] std::string_view name_of(wire::OperatorKind kind);
[[nodiscard]] std::string_view name_of(wire::ExpressionKind kind);
[[nodiscard]] std::string_view name_of(wire::ValueKind kind);
[[nodiscard]] std::string_view name_of(wire::Aggregate aggregate);

/// Number of children of a node: a, b and c in this order, as far as they are nodes.
[[nodiscard]] unsigned children_of(wire::ExpressionKind kind);

}  // namespace espalier::table
