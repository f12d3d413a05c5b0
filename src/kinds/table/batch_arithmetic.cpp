// SPDX-License-Identifier: Apache-2.0
// Kernels for + - *.
#include <cstring>

#include "base/assert.hpp"
#include "kinds/table/batch_kernels.hpp"

namespace espalier::table {
namespace {

using wire::ExpressionKind;
using wire::ValueKind;

constexpr std::int64_t kDecimalLimit = 1'000'000'000'000'000'000;

struct Add {
  static double real(double a, double b) { return a + b; }
  static bool overflows(std::int64_t a, std::int64_t b, std::int64_t& out) {
    return __builtin_add_overflow(a, b, &out);
  }
  static Wide wide(Wide a, Wide b) { return a + b; }
};
struct Subtract {
  static double real(double a, double b) { return a - b; }
  static bool overflows(std::int64_t a, std::int64_t b, std::int64_t& out) {
    return __builtin_sub_overflow(a, b, &out);
  }
  static Wide wide(Wide a, Wide b) { return a - b; }
};
struct Multiply {
  static double real(double a, double b) { return a * b; }
  static bool overflows(std::int64_t a, std::int64_t b, std::int64_t& out) {
    return __builtin_mul_overflow(a, b, &out);
  }
};

/// Null where one of both is; false if that cannot be.
bool combine_nulls(const Instruction& instruction, const Register* registers, std::uint32_t count) {
  if (!instruction.nullable) return false;
  std::uint8_t* const out = registers[instruction.to].nulls();
  const std::uint8_t* const a = registers[instruction.a].nulls();
  const std::uint8_t* const b = registers[instruction.b].nulls();
  if (instruction.a_nullable && instruction.b_nullable) {
    for (std::uint32_t i = 0; i < count; ++i) out[i] = a[i] | b[i];
  } else {
    std::memcpy(out, instruction.a_nullable ? a : b, count);
  }
  return true;
}

template <class Op>
std::uint32_t on_reals(const Instruction& instruction, const Register* registers,
                       const Batch& batch) {
  const double* const a = registers[instruction.a].reals();
  const double* const b = registers[instruction.b].reals();
  double* const out = registers[instruction.to].reals();
  for (std::uint32_t i = 0; i < batch.count; ++i) out[i] = Op::real(a[i], b[i]);
  if (combine_nulls(instruction, registers, batch.count)) {
    const std::uint8_t* const nulls = registers[instruction.to].nulls();
    for (std::uint32_t i = 0; i < batch.count; ++i) out[i] = nulls[i] != 0 ? 0.0 : out[i];
  }
  return batch.count;
}

/// Runs `one(a, b, out)`, which says whether a result does not fit, over all rows. Finds the first
/// that does not afterwards, for there hardly is one.
template <class One>
std::uint32_t checked(const Instruction& instruction, const Register* registers, const Batch& batch,
                      One&& one) {
  const std::int64_t* const a = registers[instruction.a].numbers();
  const std::int64_t* const b = registers[instruction.b].numbers();
  std::int64_t* const out = registers[instruction.to].numbers();
  std::uint8_t bad[kBatchRows];
  std::uint8_t any = 0;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    bad[i] = one(a[i], b[i], out[i]) ? 1 : 0;
    any |= bad[i];
  }
  const bool nullable = combine_nulls(instruction, registers, batch.count);
  const std::uint8_t* const nulls = registers[instruction.to].nulls();
  if (nullable) {
    for (std::uint32_t i = 0; i < batch.count; ++i) out[i] = nulls[i] != 0 ? 0 : out[i];
  }
  if (any == 0) return batch.count;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    if (bad[i] != 0 && !(nullable && nulls[i] != 0)) return i;
  }
  return batch.count;
}

template <class Op>
std::uint32_t on_integers(const Instruction& instruction, const Register* registers,
                          const Batch& batch) {
  return checked(
      instruction, registers, batch,
      [](std::int64_t a, std::int64_t b, std::int64_t& out) { return Op::overflows(a, b, out); });
}

template <class Op>
std::uint32_t on_decimals(const Instruction& instruction, const Register* registers,
                          const Batch& batch) {
  return checked(instruction, registers, batch,
                 [](std::int64_t a, std::int64_t b, std::int64_t& out) {
                   const bool wraps = Op::overflows(a, b, out);
                   return wraps | (out <= -kDecimalLimit) | (out >= kDecimalLimit);
                 });
}

/// Decimals of different scales: exact in 128 bits, whatever the aligned operands come to.
template <class Op>
std::uint32_t on_scaled(const Instruction& instruction, const Register* registers,
                        const Batch& batch) {
  const Wide a_factor = instruction.a_factor;
  const Wide b_factor = instruction.b_factor;
  return checked(instruction, registers, batch,
                 [=](std::int64_t a, std::int64_t b, std::int64_t& out) {
                   const Wide exact = Op::wide(a * a_factor, b * b_factor);
                   out = static_cast<std::int64_t>(exact);
                   return exact <= -kDecimalLimit || exact >= kDecimalLimit;
                 });
}

template <class Op>
Kernel arithmetic_kernel_of(ValueKind kind, bool aligned) {
  if (kind == ValueKind::real) return on_reals<Op>;
  if (kind == ValueKind::integer) return on_integers<Op>;
  if constexpr (requires { Op::wide(0, 0); }) {
    if (!aligned) return on_scaled<Op>;
  }
  ESPALIER_ASSERT(aligned);
  return on_decimals<Op>;
}

}  // namespace

Kernel arithmetic_kernel(ExpressionKind op, ValueKind kind, bool aligned) {
  if (op == ExpressionKind::add) return arithmetic_kernel_of<Add>(kind, aligned);
  if (op == ExpressionKind::subtract) return arithmetic_kernel_of<Subtract>(kind, aligned);
  ESPALIER_ASSERT(op == ExpressionKind::multiply);
  return arithmetic_kernel_of<Multiply>(kind, true);
}

}  // namespace espalier::table
