// SPDX-License-Identifier: Apache-2.0
// The parts of a pipeline's message (kinds/table/format/pipeline.hpp): out of bytes, and into them.
//
// What decode_pipeline() gives has the form of a pipeline: lengths, kinds, reserved bytes, indices
// and depth are right, and each node has one user. Whether it means something for a table, with its
// columns and types, check_pipeline() says (kinds/table/pipeline.hpp).
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

/// What is wrong with a pipeline, in words for people.
struct PipelineError {
  /// It is the message as a whole, not an operator.
  static constexpr std::uint32_t kNoOperator = ~std::uint32_t{0};

  std::uint32_t operator_index = kNoOperator;
  std::string operator_name;
  std::string reason;

  /// E.g. "operator 2 (filter): text is compared with integer".
  [[nodiscard]] std::string message() const;
};

template <class T>
using PipelineResult = std::expected<T, PipelineError>;

/// Takes a message apart, from any bytes. Errors: whatever breaks its form.
[[nodiscard]] PipelineResult<PipelineMessage> decode_pipeline(std::span<const std::byte> bytes);

/// The message's bytes. Requires: counts within the format's limits.
[[nodiscard]] std::vector<std::byte> encode_pipeline(const PipelineMessage& message);
/// How many they are, whether or not that is within the limit.
[[nodiscard]] std::size_t encoded_bytes(const PipelineMessage& message);

[[nodiscard]] std::string_view name_of(wire::OperatorKind kind);
[[nodiscard]] std::string_view name_of(wire::ExpressionKind kind);
[[nodiscard]] std::string_view name_of(wire::ValueKind kind);
[[nodiscard]] std::string_view name_of(wire::Aggregate aggregate);

/// How many children a node has: a, b and c in this order, as far as they are nodes.
[[nodiscard]] unsigned children_of(wire::ExpressionKind kind);

}  // namespace espalier::table
