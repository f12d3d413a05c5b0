// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/pipeline_builder.hpp"

#include <bit>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "kinds/table/pipeline_types.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;
using wire::ExpressionKind;
using wire::OperatorHeader;
using wire::OperatorKind;
using wire::ValueKind;

Constant number_constant(ValueKind kind, std::int64_t value, unsigned scale = 0) {
  Constant constant;
  constant.type = computed_type(kind, static_cast<std::uint8_t>(scale), false);
  constant.number = value;
  return constant;
}

std::unexpected<PipelineError> too_much(const char* reason) {
  return std::unexpected(PipelineError{PipelineError::kNoOperator, {}, reason});
}

}  // namespace

Constant boolean_constant(bool value) { return number_constant(ValueKind::boolean, value ? 1 : 0); }
Constant integer_constant(std::int64_t value) { return number_constant(ValueKind::integer, value); }
Constant decimal_constant(std::int64_t value, unsigned scale) {
  ESPALIER_ASSERT(scale <= wire::kDecimalDigitsMax);
  return number_constant(ValueKind::decimal, value, scale);
}
Constant date_constant(std::int32_t days) { return number_constant(ValueKind::date, days); }
Constant timestamp_constant(std::int64_t microseconds) {
  return number_constant(ValueKind::timestamp, microseconds);
}
Constant real_constant(double value) {
  Constant constant = number_constant(ValueKind::real, 0);
  constant.real = value;
  return constant;
}
Constant text_constant(std::string_view text) {
  Constant constant = number_constant(ValueKind::text, 0);
  constant.text = text;
  constant.type.stored = stored_text(text.size());
  return constant;
}
Constant null_constant(ValueKind kind) {
  Constant constant = number_constant(kind, 0);
  constant.null = true;
  if (kind == ValueKind::text) constant.type.stored = stored_text(0);
  constant.type.nullable = true;
  return constant;
}

PipelineBuilder::NodeId PipelineBuilder::append(ExpressionKind kind, std::size_t a, std::size_t b,
                                                std::size_t c) {
  // Beyond the limits numbers may repeat: finish() refuses what was built then.
  nodes_.push_back({static_cast<std::uint8_t>(kind), 0, static_cast<std::uint16_t>(a),
                    static_cast<std::uint16_t>(b), static_cast<std::uint16_t>(c)});
  return static_cast<NodeId>(nodes_.size() - 1);
}

wire::ConstantValue constant_value(const Constant& value, std::string& heap) {
  wire::ConstantValue constant{};
  constant.kind = static_cast<std::uint8_t>(value.type.kind);
  constant.scale = value.type.scale;
  constant.null = value.null ? 1 : 0;
  if (!value.null) {
    switch (value.type.kind) {
      case ValueKind::text:
        constant.bytes = static_cast<std::uint32_t>(value.text.size());
        constant.value = heap.size();
        heap += value.text;
        break;
      case ValueKind::real: constant.value = std::bit_cast<std::uint64_t>(value.real); break;
      default: constant.value = static_cast<std::uint64_t>(value.number); break;
    }
  }
  return constant;
}

std::size_t PipelineBuilder::append_constant(const Constant& value) {
  constants_.push_back(constant_value(value, heap_));
  return constants_.size() - 1;
}

PipelineBuilder::NodeId PipelineBuilder::column(std::size_t index) {
  return append(ExpressionKind::column, index);
}
PipelineBuilder::NodeId PipelineBuilder::constant(const Constant& value) {
  return append(ExpressionKind::constant, append_constant(value));
}
PipelineBuilder::NodeId PipelineBuilder::binary(ExpressionKind kind, NodeId a, NodeId b) {
  ESPALIER_ASSERT(children_of(kind) == 2);
  return append(kind, a, b);
}
PipelineBuilder::NodeId PipelineBuilder::unary(ExpressionKind kind, NodeId a) {
  ESPALIER_ASSERT(kind == ExpressionKind::logical_not || kind == ExpressionKind::is_null);
  return append(kind, a);
}
PipelineBuilder::NodeId PipelineBuilder::between(NodeId a, NodeId low, NodeId high) {
  return append(ExpressionKind::between, a, low, high);
}
PipelineBuilder::NodeId PipelineBuilder::in(NodeId a, std::span<const Constant> values) {
  ESPALIER_ASSERT(!values.empty());
  const std::size_t first = constants_.size();
  for (const Constant& value : values) append_constant(value);
  return append(ExpressionKind::in, a, first, values.size());
}
PipelineBuilder::NodeId PipelineBuilder::like(NodeId a, const Constant& pattern) {
  return append(ExpressionKind::like, a, append_constant(pattern));
}
PipelineBuilder::NodeId PipelineBuilder::matches(NodeId a, const Constant& pattern,
                                                 bool ignore_case) {
  return append(ExpressionKind::matches, a, append_constant(pattern),
                ignore_case ? wire::kMatchIgnoresCase : 0);
}

void PipelineBuilder::project(std::span<const NodeId> values) {
  ESPALIER_ASSERT(items_.empty());
  for (const NodeId node : values) {
    items_.push_back({node, static_cast<std::uint8_t>(Aggregate::none), 0, 0});
  }
}

void PipelineBuilder::group_by(std::span<const NodeId> keys,
                               std::span<const AggregateOf> aggregates) {
  project(keys);
  grouped_ = true;
  keys_ = keys.size();
  for (const AggregateOf& of : aggregates) {
    items_.push_back({of.node, static_cast<std::uint8_t>(of.aggregate), 0, 0});
  }
}

PipelineMessage PipelineBuilder::message() const {
  PipelineMessage message{{}, constants_, nodes_, items_, heap_};
  const auto add = [&message](OperatorKind kind, std::uint64_t argument, std::size_t items = 0) {
    message.operators.push_back(
        {static_cast<std::uint16_t>(kind), 0, 0, static_cast<std::uint16_t>(items), argument});
  };
  if (decrypt_) add(OperatorKind::decrypt, 0);
  add(OperatorKind::scan, static_cast<std::uint64_t>(addressing_));
  for (const NodeId filter : filters_) add(OperatorKind::filter, filter);
  if (grouped_) {
    add(OperatorKind::group_by, keys_, items_.size());
  } else if (!items_.empty()) {
    add(OperatorKind::project, 0, items_.size());
  }
  if (distinct_) add(OperatorKind::distinct, 0);
  if (limit_) add(OperatorKind::limit, *limit_);
  if (encrypt_) add(OperatorKind::encrypt, 0);
  add(OperatorKind::pack, 0);
  return message;
}

PipelineResult<std::vector<std::byte>> PipelineBuilder::finish() const {
  const PipelineMessage whole = message();
  if (whole.operators.size() > wire::kPipelineOperatorsMax) {
    return too_much("there are more than 64 operators");
  }
  if (whole.nodes.size() > wire::kPipelineNodesMax) {
    return too_much("there are more than 256 expression nodes");
  }
  if (whole.constants.size() > wire::kPipelineConstantsMax) {
    return too_much("there are more than 2048 constants");
  }
  if (whole.items.size() > wire::kPipelineItemsMax)
    return too_much("there are more than 256 items");
  if (encoded_bytes(whole) > wire::kPipelineBytesMax) {
    return too_much("the pipeline has more than 64 KiB");
  }
  std::vector<std::byte> bytes = encode_pipeline(whole);
  // What a node would refuse for its form is refused here, in the same words.
  if (auto decoded = decode_pipeline(bytes); !decoded) {
    return std::unexpected(std::move(decoded.error()));
  }
  return bytes;
}

}  // namespace espalier::table
