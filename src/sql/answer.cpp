// SPDX-License-Identifier: Apache-2.0
// The client's end of a query.
#include <cstring>

#include "sql/query.hpp"

namespace espalier::sql {
namespace {

using table::Value;
using table::ValueType;
using table::Wide;
using wire::ValueKind;

std::expected<Value, std::string> overflow() {
  return std::unexpected(std::string("a value of the answer has more than 128 bits"));
}

bool scale_up(Wide& number, unsigned from, unsigned to) {
  for (; from < to; ++from) {
    if (__builtin_mul_overflow(number, Wide{10}, &number)) return false;
  }
  return true;
}

std::expected<Value, std::string> on_reals(Output::Kind kind, double a, double b) {
  switch (kind) {
    case Output::Kind::add: return Value::of_real(a + b);
    case Output::Kind::subtract: return Value::of_real(a - b);
    case Output::Kind::multiply: return Value::of_real(a * b);
    default: break;
  }
  if (b == 0) return std::unexpected(std::string("division by zero"));
  return Value::of_real(a / b);
}

std::expected<Value, std::string> combine(const Output& output, const Value& a, const Value& b) {
  const ValueType& a_type = output.children[0].type;
  const ValueType& b_type = output.children[1].type;
  if (a.null || b.null) return Value{};
  if (output.type.kind == ValueKind::real) {
    return on_reals(output.kind, as_real(a, a_type), as_real(b, b_type));
  }
  Wide left = a.number;
  Wide right = b.number;
  Wide number = 0;
  bool fits = true;
  if (output.kind == Output::Kind::multiply) {
    fits = !__builtin_mul_overflow(left, right, &number);
  } else {
    fits = scale_up(left, a_type.scale, output.type.scale) &&
           scale_up(right, b_type.scale, output.type.scale) &&
           !(output.kind == Output::Kind::add ? __builtin_add_overflow(left, right, &number)
                                              : __builtin_sub_overflow(left, right, &number));
  }
  if (!fits) return overflow();
  return Value::of(number);
}

std::expected<Value, std::string> evaluate(const table::Pipeline& pipeline, const Output& output,
                                           const std::byte* row) {
  if (output.kind == Output::Kind::item) {
    return table::answer_value(pipeline, pipeline.items[output.item], row);
  }
  if (output.kind == Output::Kind::constant) return output.constant;
  auto a = evaluate(pipeline, output.children[0], row);
  if (!a) return a;
  if (output.kind == Output::Kind::negate) {
    if (__builtin_sub_overflow(Wide{0}, a->number, &a->number)) return overflow();
    a->real = -a->real;
    return a;
  }
  auto b = evaluate(pipeline, output.children[1], row);
  if (!b) return b;
  return combine(output, *a, *b);
}

/// Equal for rows that are equal.
std::string key_of(const Query& query, Answer::Row row) {
  std::string key;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const ValueType& type = query.columns[i].type();
    Value value = row[i];
    value.real = table::canonical_real(value.real);
    const std::string part = value.null ? "n" : "=" + to_text(value, type);
    key += std::to_string(part.size()) + ":" + part;
  }
  return key;
}

}  // namespace

Answer::Answer(const Query& query, std::uint64_t seed)
    : query_(query), merge_(query.pipeline, seed), values_(query.columns.size()) {}

Answer::Taken Answer::hand_out(const std::byte* row, const Take& out) {
  if (query_.limit_here && rows_ >= *query_.limit_here) return {};
  for (std::size_t i = 0; i < values_.size(); ++i) {
    auto value = evaluate(query_.pipeline, query_.columns[i].output, row);
    if (!value) return std::unexpected(std::move(value.error()));
    values_[i] = *std::move(value);
  }
  if (query_.distinct_here && !seen_.insert(key_of(query_, values_)).second) return {};
  ++rows_;
  out(values_);
  return {};
}

Answer::Taken Answer::take(std::span<const std::byte> rows, const Take& out) {
  const std::size_t taken = merge_.take(rows);
  if (!merge_.is_streaming()) return {};
  for (std::size_t i = 0; i < taken; ++i) {
    const std::byte* row = rows.data() + i * query_.pipeline.result.row_bytes();
    if (auto done = hand_out(row, out); !done) return done;
  }
  return {};
}

Answer::Taken Answer::finish(const Take& out) {
  if (merge_.is_streaming()) return {};
  for (std::size_t i = 0; i < merge_.size(); ++i) {
    if (auto done = hand_out(merge_.row(i), out); !done) return done;
  }
  return {};
}

bool Answer::is_full() const {
  return merge_.is_full() || (query_.limit_here && rows_ >= *query_.limit_here);
}

}  // namespace espalier::sql
