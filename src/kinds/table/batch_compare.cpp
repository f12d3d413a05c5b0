// SPDX-License-Identifier: Apache-2.0
// Kernels for conditions: comparisons, in, like, and, or, not, is null.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "kinds/table/batch_kernels.hpp"
#include "kinds/table/value.hpp"

namespace espalier::table {
namespace {

using wire::ExpressionKind;
using wire::ValueKind;

/// What the order of two values says about a comparison: below 0, 0, above.
template <ExpressionKind Op>
bool holds(int order) {
  if constexpr (Op == ExpressionKind::equal) return order == 0;
  if constexpr (Op == ExpressionKind::not_equal) return order != 0;
  if constexpr (Op == ExpressionKind::less) return order < 0;
  if constexpr (Op == ExpressionKind::less_equal) return order <= 0;
  if constexpr (Op == ExpressionKind::greater) return order > 0;
  return order >= 0;
}

/// Whole numbers compare by one machine instruction each.
template <ExpressionKind Op, class T>
bool compare(T a, T b) {
  if constexpr (Op == ExpressionKind::equal) return a == b;
  if constexpr (Op == ExpressionKind::not_equal) return a != b;
  if constexpr (Op == ExpressionKind::less) return a < b;
  if constexpr (Op == ExpressionKind::less_equal) return a <= b;
  if constexpr (Op == ExpressionKind::greater) return a > b;
  return a >= b;
}

/// Makes nulls of the result where an operand is null, and false of its truth.
void apply_nulls(const Instruction& instruction, const Register* registers, std::uint32_t count) {
  if (!instruction.nullable) return;
  const Register& to = registers[instruction.to];
  std::uint8_t* const nulls = to.nulls();
  std::uint8_t* const truths = to.truths();
  const std::uint8_t* const a = registers[instruction.a].nulls();
  const std::uint8_t* const b = registers[instruction.b].nulls();
  if (instruction.a_nullable && instruction.b_nullable) {
    for (std::uint32_t i = 0; i < count; ++i) nulls[i] = a[i] | b[i];
  } else {
    std::memcpy(nulls, instruction.a_nullable ? a : b, count);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    truths[i] = static_cast<std::uint8_t>(truths[i] & (nulls[i] ^ 1));
  }
}

template <class T, class One>
std::uint32_t compare_all(const Instruction& instruction, const Register* registers,
                          const Batch& batch, const T* a, const T* b, One&& one) {
  std::uint8_t* const out = registers[instruction.to].truths();
  for (std::uint32_t i = 0; i < batch.count; ++i) out[i] = one(a[i], b[i]) ? 1 : 0;
  apply_nulls(instruction, registers, batch.count);
  return batch.count;
}

template <ExpressionKind Op>
std::uint32_t compare_numbers(const Instruction& instruction, const Register* registers,
                              const Batch& batch) {
  return compare_all(instruction, registers, batch, registers[instruction.a].numbers(),
                     registers[instruction.b].numbers(), compare<Op, std::int64_t>);
}

template <ExpressionKind Op>
std::uint32_t compare_scaled(const Instruction& instruction, const Register* registers,
                             const Batch& batch) {
  const Wide a_factor = instruction.a_factor;
  const Wide b_factor = instruction.b_factor;
  return compare_all(instruction, registers, batch, registers[instruction.a].numbers(),
                     registers[instruction.b].numbers(), [=](std::int64_t a, std::int64_t b) {
                       return compare<Op, Wide>(a * a_factor, b * b_factor);
                     });
}

template <ExpressionKind Op>
std::uint32_t compare_truths(const Instruction& instruction, const Register* registers,
                             const Batch& batch) {
  return compare_all(instruction, registers, batch, registers[instruction.a].truths(),
                     registers[instruction.b].truths(), compare<Op, std::uint8_t>);
}

template <ExpressionKind Op>
std::uint32_t compare_real(const Instruction& instruction, const Register* registers,
                           const Batch& batch) {
  return compare_all(instruction, registers, batch, registers[instruction.a].reals(),
                     registers[instruction.b].reals(),
                     [](double a, double b) { return holds<Op>(compare_reals(a, b)); });
}

template <ExpressionKind Op>
std::uint32_t compare_texts(const Instruction& instruction, const Register* registers,
                            const Batch& batch) {
  return compare_all(instruction, registers, batch, registers[instruction.a].texts(),
                     registers[instruction.b].texts(), [](std::string_view a, std::string_view b) {
                       if constexpr (Op == ExpressionKind::equal) return a == b;
                       return holds<Op>(base::compare(a, b));
                     });
}

template <ExpressionKind Op>
Kernel comparison_kernel_of(ValueKind kind, bool aligned) {
  switch (kind) {
    case ValueKind::boolean: return compare_truths<Op>;
    case ValueKind::real: return compare_real<Op>;
    case ValueKind::text: return compare_texts<Op>;
    default: return aligned ? compare_numbers<Op> : compare_scaled<Op>;
  }
}

/// and: false if one is false, else null if one is null. or: the same with true.
template <bool Or>
std::uint32_t connect(const Instruction& instruction, const Register* registers,
                      const Batch& batch) {
  const Register& to = registers[instruction.to];
  const std::uint8_t* const a = registers[instruction.a].truths();
  const std::uint8_t* const b = registers[instruction.b].truths();
  std::uint8_t* const out = to.truths();
  if (!instruction.nullable) {
    for (std::uint32_t i = 0; i < batch.count; ++i) out[i] = Or ? a[i] | b[i] : a[i] & b[i];
    return batch.count;
  }
  static constexpr std::uint8_t kNever[kBatchRows] = {};
  const std::uint8_t* const a_null =
      instruction.a_nullable ? registers[instruction.a].nulls() : kNever;
  const std::uint8_t* const b_null =
      instruction.b_nullable ? registers[instruction.b].nulls() : kNever;
  std::uint8_t* const null = to.nulls();
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    const unsigned a_true = a[i];
    const unsigned b_true = b[i];
    const unsigned a_false = (a_true | a_null[i]) ^ 1u;
    const unsigned b_false = (b_true | b_null[i]) ^ 1u;
    const unsigned is_true = Or ? a_true | b_true : a_true & b_true;
    const unsigned is_false = Or ? a_false & b_false : a_false | b_false;
    out[i] = static_cast<std::uint8_t>(is_true);
    null[i] = static_cast<std::uint8_t>((is_true | is_false) ^ 1u);
  }
  return batch.count;
}

std::uint32_t logical_not(const Instruction& instruction, const Register* registers,
                          const Batch& batch) {
  const Register& to = registers[instruction.to];
  const std::uint8_t* const a = registers[instruction.a].truths();
  std::uint8_t* const out = to.truths();
  for (std::uint32_t i = 0; i < batch.count; ++i) out[i] = a[i] ^ 1;
  apply_nulls(instruction, registers, batch.count);
  return batch.count;
}

std::uint32_t is_null(const Instruction& instruction, const Register* registers,
                      const Batch& batch) {
  std::uint8_t* const out = registers[instruction.to].truths();
  if (instruction.a_nullable) {
    std::memcpy(out, registers[instruction.a].nulls(), batch.count);
  } else {
    std::memset(out, 0, batch.count);
  }
  return batch.count;
}

/// Null, unless it is there, if one of those looked for is.
void apply_null_candidate(const Instruction& instruction, const Register* registers,
                          std::uint32_t count) {
  const Register& to = registers[instruction.to];
  if (!instruction.candidates->null) return apply_nulls(instruction, registers, count);
  std::uint8_t* const nulls = to.nulls();
  std::uint8_t* const truths = to.truths();
  const std::uint8_t* const a = registers[instruction.a].nulls();
  for (std::uint32_t i = 0; i < count; ++i) {
    const unsigned unknown = instruction.a_nullable ? a[i] : 0;
    truths[i] = static_cast<std::uint8_t>(truths[i] & (unknown ^ 1u));
    nulls[i] = truths[i] ^ 1;
  }
}

std::uint32_t in_numbers(const Instruction& instruction, const Register* registers,
                         const Batch& batch) {
  constexpr std::size_t kFew = 16;
  const std::int64_t* const a = registers[instruction.a].numbers();
  std::uint8_t* const out = registers[instruction.to].truths();
  const Candidates& candidates = *instruction.candidates;
  const auto& numbers = candidates.numbers;
  std::memset(out, 0, batch.count);
  if (numbers.size() <= kFew) {
    for (const std::int64_t number : numbers) {
      for (std::uint32_t i = 0; i < batch.count; ++i) {
        out[i] = static_cast<std::uint8_t>(out[i] | (a[i] == number));
      }
    }
  } else {
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      out[i] = std::ranges::binary_search(numbers, a[i]) ? 1 : 0;
    }
  }
  const auto divisor = static_cast<double>(instruction.a_factor);
  for (const double real : candidates.reals) {
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      const bool equal = compare_reals(static_cast<double>(a[i]) / divisor, real) == 0;
      out[i] = static_cast<std::uint8_t>(out[i] | equal);
    }
  }
  apply_null_candidate(instruction, registers, batch.count);
  return batch.count;
}

std::uint32_t in_reals(const Instruction& instruction, const Register* registers,
                       const Batch& batch) {
  const double* const a = registers[instruction.a].reals();
  std::uint8_t* const out = registers[instruction.to].truths();
  std::memset(out, 0, batch.count);
  for (const double real : instruction.candidates->reals) {
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      out[i] = static_cast<std::uint8_t>(out[i] | (compare_reals(a[i], real) == 0));
    }
  }
  apply_null_candidate(instruction, registers, batch.count);
  return batch.count;
}

std::uint32_t in_truths(const Instruction& instruction, const Register* registers,
                        const Batch& batch) {
  const std::uint8_t* const a = registers[instruction.a].truths();
  std::uint8_t* const out = registers[instruction.to].truths();
  std::memset(out, 0, batch.count);
  for (const std::int64_t number : instruction.candidates->numbers) {
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      out[i] = static_cast<std::uint8_t>(out[i] | (a[i] == number));
    }
  }
  apply_null_candidate(instruction, registers, batch.count);
  return batch.count;
}

std::uint32_t in_texts(const Instruction& instruction, const Register* registers,
                       const Batch& batch) {
  const std::string_view* const a = registers[instruction.a].texts();
  std::uint8_t* const out = registers[instruction.to].truths();
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    out[i] = std::ranges::binary_search(instruction.candidates->texts, a[i]) ? 1 : 0;
  }
  apply_null_candidate(instruction, registers, batch.count);
  return batch.count;
}

std::uint32_t like(const Instruction& instruction, const Register* registers, const Batch& batch) {
  const std::string_view* const a = registers[instruction.a].texts();
  std::uint8_t* const out = registers[instruction.to].truths();
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    out[i] = instruction.pattern->matches(a[i]) ? 1 : 0;
  }
  apply_nulls(instruction, registers, batch.count);
  return batch.count;
}

}  // namespace

Kernel compare_kernel(ExpressionKind op, ValueKind kind, bool aligned) {
  switch (op) {
    case ExpressionKind::equal: return comparison_kernel_of<ExpressionKind::equal>(kind, aligned);
    case ExpressionKind::not_equal:
      return comparison_kernel_of<ExpressionKind::not_equal>(kind, aligned);
    case ExpressionKind::less: return comparison_kernel_of<ExpressionKind::less>(kind, aligned);
    case ExpressionKind::less_equal:
      return comparison_kernel_of<ExpressionKind::less_equal>(kind, aligned);
    case ExpressionKind::greater:
      return comparison_kernel_of<ExpressionKind::greater>(kind, aligned);
    case ExpressionKind::greater_equal:
      return comparison_kernel_of<ExpressionKind::greater_equal>(kind, aligned);
    default: std::unreachable();
  }
}

Kernel logic_kernel(ExpressionKind op) {
  switch (op) {
    case ExpressionKind::logical_and: return connect<false>;
    case ExpressionKind::logical_or: return connect<true>;
    case ExpressionKind::logical_not: return logical_not;
    case ExpressionKind::is_null: return is_null;
    default: std::unreachable();
  }
}

Kernel in_kernel(ValueKind kind) {
  switch (kind) {
    case ValueKind::boolean: return in_truths;
    case ValueKind::real: return in_reals;
    case ValueKind::text: return in_texts;
    default: return in_numbers;
  }
}

Kernel like_kernel() { return like; }

}  // namespace espalier::table
