// SPDX-License-Identifier: Apache-2.0
// Kernels that bring columns of rows into registers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "kinds/table/batch_kernels.hpp"
#include "kinds/table/planted_table_bugs.hpp"

namespace espalier::table {
namespace {

using base::load_plain;

/// Calls `each(i, row)` for all rows that are selected; all of them in order is the usual case.
template <class Each>
void for_rows(const Batch& batch, Each&& each) {
  const std::size_t stride = batch.row_bytes;
  if (batch.dense) {
    for (std::uint32_t i = 0; i < batch.count; ++i) each(i, batch.rows + i * stride);
  } else {
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      each(i, batch.rows + batch.selected[i] * stride);
    }
  }
}

void load_nulls(const Instruction& instruction, const Register& to, const Batch& batch) {
  const std::uint32_t at = instruction.column->null_byte;
  const std::uint8_t mask = instruction.column->null_mask;
  std::uint8_t* const nulls = to.nulls();
  if (planted(Bug::null_is_zero)) {
    std::memset(nulls, 0, batch.count);
    return;
  }
  for_rows(batch, [=](std::uint32_t i, const std::byte* row) {
    nulls[i] = (load_plain<std::uint8_t>(row + at) & mask) != 0 ? 1 : 0;
  });
}

template <class T, class Out>
void load_values(const Instruction& instruction, Out* out, const Register& to, const Batch& batch) {
  const std::uint32_t offset = instruction.column->offset;
  for_rows(batch, [=](std::uint32_t i, const std::byte* row) {
    out[i] = static_cast<Out>(load_plain<T>(row + offset));
  });
  if (!instruction.nullable) return;
  load_nulls(instruction, to, batch);
  const std::uint8_t* const nulls = to.nulls();
  for (std::uint32_t i = 0; i < batch.count; ++i) out[i] = nulls[i] != 0 ? Out{0} : out[i];
}

template <class T>
std::uint32_t load_number(const Instruction& instruction, const Register* registers,
                          const Batch& batch) {
  const Register& to = registers[instruction.to];
  load_values<T>(instruction, to.numbers(), to, batch);
  return batch.count;
}

template <class T>
std::uint32_t load_real(const Instruction& instruction, const Register* registers,
                        const Batch& batch) {
  const Register& to = registers[instruction.to];
  load_values<T>(instruction, to.reals(), to, batch);
  return batch.count;
}

std::uint32_t load_truth(const Instruction& instruction, const Register* registers,
                         const Batch& batch) {
  const Register& to = registers[instruction.to];
  std::uint8_t* const out = to.truths();
  load_values<std::uint8_t>(instruction, out, to, batch);
  for (std::uint32_t i = 0; i < batch.count; ++i) out[i] = out[i] != 0 ? 1 : 0;
  return batch.count;
}

template <bool Fixed>
std::uint32_t load_text(const Instruction& instruction, const Register* registers,
                        const Batch& batch) {
  const Register& to = registers[instruction.to];
  const Column& column = *instruction.column;
  std::string_view* const out = to.texts();
  for_rows(batch, [&](std::uint32_t i, const std::byte* row) {
    const std::byte* at = row + column.offset;
    std::size_t bytes = column.type.length;
    if constexpr (Fixed) {
      while (bytes > 0 && at[bytes - 1] == std::byte{' '}) --bytes;
    } else {
      bytes = std::min<std::size_t>(load_plain<std::uint16_t>(at), bytes);
      at += 2;
    }
    out[i] = {reinterpret_cast<const char*>(at), bytes};
  });
  if (!instruction.nullable) return batch.count;
  load_nulls(instruction, to, batch);
  const std::uint8_t* const nulls = to.nulls();
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    if (nulls[i] != 0) out[i] = {};
  }
  return batch.count;
}

std::uint32_t to_real(const Instruction& instruction, const Register* registers,
                      const Batch& batch) {
  const std::int64_t* const a = registers[instruction.a].numbers();
  const auto divisor = static_cast<double>(instruction.a_factor);
  double* const out = registers[instruction.to].reals();
  for (std::uint32_t i = 0; i < batch.count; ++i) out[i] = static_cast<double>(a[i]) / divisor;
  if (instruction.nullable) {
    std::memcpy(registers[instruction.to].nulls(), registers[instruction.a].nulls(), batch.count);
  }
  return batch.count;
}

}  // namespace

Kernel load_kernel(ColumnType type) {
  switch (type) {
    case ColumnType::i8: return load_number<std::int8_t>;
    case ColumnType::i16: return load_number<std::int16_t>;
    case ColumnType::i32:
    case ColumnType::date: return load_number<std::int32_t>;
    case ColumnType::i64:
    case ColumnType::decimal:
    case ColumnType::timestamp: return load_number<std::int64_t>;
    case ColumnType::f32: return load_real<float>;
    case ColumnType::f64: return load_real<double>;
    case ColumnType::boolean: return load_truth;
    case ColumnType::fixed_char: return load_text<true>;
    case ColumnType::text: return load_text<false>;
    case ColumnType::invalid: break;
  }
  std::unreachable();
}

Kernel to_real_kernel() { return to_real; }

void fill(const Register& to, const Constant& constant) {
  std::memset(to.nulls(), constant.null ? 1 : 0, kBatchRows);
  switch (constant.type.kind) {
    case wire::ValueKind::boolean:
      std::memset(to.truths(), static_cast<int>(constant.number), kBatchRows);
      return;
    case wire::ValueKind::real: std::fill_n(to.reals(), kBatchRows, constant.real); return;
    case wire::ValueKind::text:
      std::fill_n(to.texts(), kBatchRows, std::string_view(constant.text));
      return;
    default: std::fill_n(to.numbers(), kBatchRows, constant.number); return;
  }
}

void select(Batch& batch, const Register& condition) {
  const std::uint8_t* const truths = condition.truths();
  std::uint32_t kept = 0;
  // Without a branch: each row is written where the next one goes, and stays if it is selected.
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    batch.selected[kept] = static_cast<std::uint16_t>(batch.number(i));
    kept += truths[i];
  }
  batch.dense = batch.dense && kept == batch.count;
  batch.count = kept;
}

}  // namespace espalier::table
