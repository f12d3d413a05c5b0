// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/pipeline_message.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"

namespace espalier::table {
namespace {

using wire::ConstantValue;
using wire::ExpressionKind;
using wire::ExpressionNode;
using wire::OperatorHeader;
using wire::OperatorKind;
using wire::PipelineHeader;
using wire::PipelineItem;
using wire::ValueKind;

std::unexpected<PipelineError> wrong_message(std::string reason) {
  return std::unexpected(PipelineError{PipelineError::kNoOperator, {}, std::move(reason)});
}

std::unexpected<PipelineError> wrong_with(std::size_t index, const OperatorHeader& header,
                                          std::string reason) {
  return std::unexpected(PipelineError{static_cast<std::uint32_t>(index),
                                       std::string(name_of(static_cast<OperatorKind>(header.kind))),
                                       std::move(reason)});
}

std::string node_text(std::size_t i) { return "expression node " + std::to_string(i); }

/// Checks the form of a message whose parts were read; remembers the depth of each node.
class FormCheck {
 public:
  explicit FormCheck(const PipelineMessage& message) : message_(message) {}

  PipelineResult<void> run() {
    if (auto checked = constants(); !checked) return checked;
    if (auto checked = nodes(); !checked) return checked;
    if (auto checked = operators(); !checked) return checked;
    if (const auto unused = std::ranges::find(used_, false); unused != used_.end()) {
      return wrong_message(node_text(static_cast<std::size_t>(unused - used_.begin())) +
                           " is not used");
    }
    return {};
  }

 private:
  PipelineResult<void> constants();
  PipelineResult<void> nodes();
  PipelineResult<void> node(std::size_t i);
  PipelineResult<void> operators();
  PipelineResult<void> items(std::size_t index, const OperatorHeader& header);

  /// Takes a root or child for its only user.
  bool use(std::size_t node) {
    if (node >= used_.size() || used_[node]) return false;
    used_[node] = true;
    return true;
  }

  const PipelineMessage& message_;
  std::vector<bool> used_;
  std::vector<unsigned> depth_;
  std::size_t next_item_ = 0;
  std::size_t regexes_ = 0;
};

/// Null if the constant has the right form, else what is wrong.
const char* wrong_with_constant(const ConstantValue& constant, std::size_t heap_bytes) {
  const auto kind = static_cast<ValueKind>(constant.kind);
  if (kind == ValueKind::invalid || kind > ValueKind::text) return "has an unknown type";
  if (constant.reserved != 0 || constant.null > 1) return "has a reserved byte that is not 0";
  if (constant.scale > (kind == ValueKind::decimal ? 18 : 0)) return "has a wrong scale";
  if (kind != ValueKind::text && constant.bytes != 0) return "has a length and is no text";
  if (constant.null == 1) {
    return constant.value != 0 || constant.bytes != 0 ? "is null and has a value" : nullptr;
  }
  switch (kind) {
    case ValueKind::boolean: return constant.value > 1 ? "is neither true nor false" : nullptr;
    case ValueKind::text:
      if (constant.bytes > wire::kConstantTextBytesMax) return "has more than 1024 bytes of text";
      if (constant.value > heap_bytes || constant.bytes > heap_bytes - constant.value) {
        return "lies outside the message";
      }
      return nullptr;
    default: return nullptr;
  }
}

PipelineResult<void> FormCheck::constants() {
  for (std::size_t i = 0; i < message_.constants.size(); ++i) {
    const char* reason = wrong_with_constant(message_.constants[i], message_.heap.size());
    if (reason) return wrong_message("constant " + std::to_string(i) + " " + reason);
  }
  return {};
}

PipelineResult<void> FormCheck::nodes() {
  used_.assign(message_.nodes.size(), false);
  depth_.assign(message_.nodes.size(), 1);
  for (std::size_t i = 0; i < message_.nodes.size(); ++i) {
    if (auto checked = node(i); !checked) return checked;
  }
  return {};
}

PipelineResult<void> FormCheck::node(std::size_t i) {
  const ExpressionNode& node = message_.nodes[i];
  const auto kind = static_cast<ExpressionKind>(node.kind);
  if (kind == ExpressionKind::invalid || kind > ExpressionKind::matches) {
    return wrong_message(node_text(i) + " has an unknown kind");
  }
  const std::array operands = {node.a, node.b, node.c};
  const unsigned children = children_of(kind);
  for (unsigned n = 0; n < children; ++n) {
    if (operands[n] >= i)
      return wrong_message(node_text(i) + " has a child that does not precede it");
    if (!use(operands[n])) return wrong_message(node_text(operands[n]) + " is used twice");
    depth_[i] = std::max(depth_[i], depth_[operands[n]] + 1);
  }
  if (depth_[i] > wire::kPipelineDepthMax)
    return wrong_message("an expression is more than 32 deep");
  unsigned used_operands = children;
  std::size_t constants_end = 0;
  switch (kind) {
    case ExpressionKind::column: used_operands = 1; break;
    case ExpressionKind::constant:
      used_operands = 1;
      constants_end = std::size_t{node.a} + 1;
      break;
    case ExpressionKind::like:
      used_operands = 2;
      constants_end = std::size_t{node.b} + 1;
      break;
    case ExpressionKind::matches:
      if ((node.c & ~wire::kMatchFlags) != 0)
        return wrong_message(node_text(i) + " has an unknown flag");
      if (++regexes_ > wire::kPipelineRegexesMax) {
        return wrong_message("there are more than 16 regular expressions");
      }
      used_operands = 3;
      constants_end = std::size_t{node.b} + 1;
      break;
    case ExpressionKind::in:
      if (node.c == 0) return wrong_message(node_text(i) + " asks for one of no constants");
      used_operands = 3;
      constants_end = std::size_t{node.b} + node.c;
      break;
    default: break;
  }
  if (constants_end > message_.constants.size()) {
    return wrong_message(node_text(i) + " names a constant that there is not");
  }
  bool zero = node.reserved == 0;
  for (unsigned n = used_operands; n < operands.size(); ++n) zero = zero && operands[n] == 0;
  if (!zero) return wrong_message(node_text(i) + " has a reserved byte that is not 0");
  return {};
}

PipelineResult<void> FormCheck::operators() {
  for (std::size_t i = 0; i < message_.operators.size(); ++i) {
    const OperatorHeader& header = message_.operators[i];
    const auto kind = static_cast<OperatorKind>(header.kind);
    if (kind == OperatorKind::invalid || kind > OperatorKind::pack) {
      return wrong_with(i, header, "no operator has the number " + std::to_string(header.kind));
    }
    if (header.reserved != 0) return wrong_with(i, header, "a reserved byte is not 0");
    if (kind == OperatorKind::filter && !use(header.argument)) {
      return wrong_with(i, header, "its condition is no expression, or that of another");
    }
    const bool has_items = kind == OperatorKind::project || kind == OperatorKind::group_by;
    if (!has_items && (header.items != 0 || header.first_item != 0)) {
      return wrong_with(i, header, "it has no items");
    }
    if (has_items) {
      if (auto checked = items(i, header); !checked) return checked;
    }
  }
  if (next_item_ != message_.items.size())
    return wrong_message("there are items without an operator");
  return {};
}

PipelineResult<void> FormCheck::items(std::size_t index, const OperatorHeader& header) {
  if (header.first_item != next_item_ || header.items > message_.items.size() - next_item_) {
    return wrong_with(index, header, "its items are not those behind the last operator's");
  }
  next_item_ += header.items;
  for (std::size_t i = header.first_item; i < next_item_; ++i) {
    const PipelineItem& item = message_.items[i];
    const std::string text = "item " + std::to_string(i - header.first_item);
    if (item.reserved != 0 || item.reserved2 != 0) {
      return wrong_with(index, header, text + " has a reserved byte that is not 0");
    }
    if (item.aggregate > static_cast<std::uint8_t>(wire::Aggregate::avg)) {
      return wrong_with(index, header, text + " is an unknown aggregate");
    }
    const bool counts_rows =
        item.aggregate == static_cast<std::uint8_t>(wire::Aggregate::count_rows);
    if (counts_rows ? item.node != wire::kNoExpression : !use(item.node)) {
      return wrong_with(index, header, text + " names no expression, or that of another");
    }
  }
  return {};
}

template <class T>
const std::byte* read_part(std::vector<T>& part, std::size_t count, const std::byte* at) {
  part.resize(count);
  if (count != 0) std::memcpy(part.data(), at, count * sizeof(T));
  return at + count * sizeof(T);
}

template <class T>
std::byte* write_part(const std::vector<T>& part, std::byte* at) {
  if (!part.empty()) std::memcpy(at, part.data(), part.size() * sizeof(T));
  return at + part.size() * sizeof(T);
}

const char* wrong_with_header(const PipelineHeader& header, std::size_t bytes) {
  if (header.magic != wire::kPipelineMagic) return "this is no pipeline";
  if (header.version != wire::kPipelineVersion) return "the pipeline has an unknown version";
  if (header.reserved != 0 || header.reserved2 != 0) return "a reserved byte is not 0";
  if (header.operators > wire::kPipelineOperatorsMax) return "there are more than 64 operators";
  if (header.constants > wire::kPipelineConstantsMax) return "there are more than 2048 constants";
  if (header.nodes > wire::kPipelineNodesMax) return "there are more than 256 expression nodes";
  if (header.items > wire::kPipelineItemsMax) return "there are more than 256 items";
  if (header.bytes != bytes) return "the pipeline's length is not that of its message";
  return nullptr;
}

}  // namespace

PipelineResult<PipelineMessage> decode_pipeline(std::span<const std::byte> bytes) {
  PipelineHeader header;
  if (bytes.size() > wire::kPipelineBytesMax)
    return wrong_message("the pipeline has more than 64 KiB");
  if (bytes.size() < sizeof header) return wrong_message("the pipeline is cut off");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (const char* reason = wrong_with_header(header, bytes.size())) return wrong_message(reason);
  const std::size_t parts = sizeof header + header.operators * sizeof(OperatorHeader) +
                            header.constants * sizeof(ConstantValue) +
                            header.nodes * sizeof(ExpressionNode) +
                            header.items * sizeof(PipelineItem);
  const std::size_t heap_end = parts + std::size_t{header.heap_bytes};
  if (base::round_up(heap_end, std::size_t{8}) != bytes.size()) {
    return wrong_message("the pipeline's length is not that of its parts");
  }
  PipelineMessage message;
  const std::byte* at = bytes.data() + sizeof header;
  at = read_part(message.operators, header.operators, at);
  at = read_part(message.constants, header.constants, at);
  at = read_part(message.nodes, header.nodes, at);
  at = read_part(message.items, header.items, at);
  message.heap.assign(reinterpret_cast<const char*>(at), header.heap_bytes);
  const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
  if (!std::ranges::all_of(bytes.subspan(heap_end), is_zero)) {
    return wrong_message("a byte behind the heap is not 0");
  }
  if (auto checked = FormCheck(message).run(); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  return message;
}

std::size_t encoded_bytes(const PipelineMessage& message) {
  const std::size_t bytes = sizeof(PipelineHeader) +
                            message.operators.size() * sizeof(OperatorHeader) +
                            message.constants.size() * sizeof(ConstantValue) +
                            message.nodes.size() * sizeof(ExpressionNode) +
                            message.items.size() * sizeof(PipelineItem) + message.heap.size();
  return base::round_up(bytes, std::size_t{8});
}

std::vector<std::byte> encode_pipeline(const PipelineMessage& message) {
  const std::size_t bytes = encoded_bytes(message);
  ESPALIER_ASSERT(bytes <= wire::kPipelineBytesMax);
  PipelineHeader header{};
  header.magic = wire::kPipelineMagic;
  header.version = wire::kPipelineVersion;
  header.bytes = static_cast<std::uint32_t>(bytes);
  header.operators = static_cast<std::uint16_t>(message.operators.size());
  header.constants = static_cast<std::uint16_t>(message.constants.size());
  header.nodes = static_cast<std::uint16_t>(message.nodes.size());
  header.items = static_cast<std::uint16_t>(message.items.size());
  header.heap_bytes = static_cast<std::uint32_t>(message.heap.size());
  std::vector<std::byte> out(bytes);
  std::memcpy(out.data(), &header, sizeof header);
  std::byte* at = out.data() + sizeof header;
  at = write_part(message.operators, at);
  at = write_part(message.constants, at);
  at = write_part(message.nodes, at);
  at = write_part(message.items, at);
  if (!message.heap.empty()) std::memcpy(at, message.heap.data(), message.heap.size());
  return out;
}

}  // namespace espalier::table
