// SPDX-License-Identifier: Apache-2.0
// Builds the message of a pipeline: expressions first, then the operators that use them.
//
//   PipelineBuilder builder;
//   const auto price = builder.column(2);
//   const auto bound = builder.constant(decimal_constant(995, 2));
//   builder.filter(builder.binary(ExpressionKind::less, price, bound));
//   builder.group_by({builder.column(0)}, {{Aggregate::sum, builder.column(2)}});
//   PipelineResult<std::vector<std::byte>> bytes = builder.finish();
//
// Operators are sorted into their order, whatever the order of the calls. Each node is used once:
// build an expression twice to use it in two places.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/table/pipeline.hpp"

namespace espalier::table {

[[nodiscard]] Constant boolean_constant(bool value);
[[nodiscard]] Constant integer_constant(std::int64_t value);
/// value * 10^-scale. Requires: scale <= 18.
[[nodiscard]] Constant decimal_constant(std::int64_t value, unsigned scale);
[[nodiscard]] Constant real_constant(double value);
[[nodiscard]] Constant date_constant(std::int32_t days);
[[nodiscard]] Constant timestamp_constant(std::int64_t microseconds);
[[nodiscard]] Constant text_constant(std::string_view text);
/// Null, of a kind.
[[nodiscard]] Constant null_constant(wire::ValueKind kind);

/// In the message's form; appends its text to the heap.
[[nodiscard]] wire::ConstantValue constant_value(const Constant& value, std::string& heap);

class PipelineBuilder {
 public:
  /// The number of a node.
  using NodeId = std::uint16_t;

  struct AggregateOf {
    wire::Aggregate aggregate;
    NodeId node;  ///< kNoExpression of count(*)
  };

  NodeId column(std::size_t index);
  NodeId constant(const Constant& value);
  /// + - *, comparisons, and, or.
  NodeId binary(wire::ExpressionKind kind, NodeId a, NodeId b);
  /// not, is null.
  NodeId unary(wire::ExpressionKind kind, NodeId a);
  NodeId between(NodeId a, NodeId low, NodeId high);
  /// Requires: there is at least one value.
  NodeId in(NodeId a, std::span<const Constant> values);
  NodeId like(NodeId a, const Constant& pattern);
  /// Whether a regular expression matches in a.
  NodeId matches(NodeId a, const Constant& pattern, bool ignore_case = false);

  void address(wire::Addressing addressing) { addressing_ = addressing; }
  void filter(NodeId condition) { filters_.push_back(condition); }
  void project(std::span<const NodeId> values);
  /// The table's rows are encrypted.
  void decrypt() { decrypt_ = true; }
  /// The result's rows are to be encrypted.
  void encrypt() { encrypt_ = true; }
  void distinct() { distinct_ = true; }
  void group_by(std::span<const NodeId> keys, std::span<const AggregateOf> aggregates);
  void limit(std::uint64_t rows) { limit_ = rows; }

  /// Nodes built so far, by number.
  [[nodiscard]] std::span<const wire::ExpressionNode> nodes() const { return nodes_; }
  /// The message in parts, even if it exceeds the limits.
  [[nodiscard]] PipelineMessage message() const;
  /// The message's bytes. Errors: limits of counts, depth and bytes; nodes used twice or never.
  [[nodiscard]] PipelineResult<std::vector<std::byte>> finish() const;

 private:
  NodeId append(wire::ExpressionKind kind, std::size_t a, std::size_t b = 0, std::size_t c = 0);
  std::size_t append_constant(const Constant& value);

  std::vector<wire::ConstantValue> constants_;
  std::vector<wire::ExpressionNode> nodes_;
  std::vector<wire::PipelineItem> items_;
  std::string heap_;
  wire::Addressing addressing_ = wire::Addressing::automatic;
  std::vector<NodeId> filters_;
  bool decrypt_ = false;
  bool encrypt_ = false;
  bool distinct_ = false;
  bool grouped_ = false;
  std::size_t keys_ = 0;
  std::optional<std::uint64_t> limit_;
};

}  // namespace espalier::table
