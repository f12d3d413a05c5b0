// SPDX-License-Identifier: Apache-2.0
// Vectorized kernels of compiled expressions: each works on a column of up to 256 values.
//
// A register holds the values of one expression for the selected rows of a batch, contiguously. By
// kind: 64-bit numbers (integers, decimals, dates, timestamps), reals, truth values of one byte, or
// texts that point into the rows. A parallel array has a null byte for each row; a null's value is
// 0, false or empty.
//
// An instruction returns the first of its rows whose result does not fit, or the number of rows.
//
// Thread: registers belong to one run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kinds/table/like.hpp"
#include "kinds/table/pipeline.hpp"
#include "kinds/table/wide.hpp"

namespace espalier::table {

inline constexpr std::uint32_t kBatchRows = 256;

/// The values of one expression.
struct Register {
  static constexpr std::size_t kDataBytes = kBatchRows * sizeof(std::string_view);
  static constexpr std::size_t kBytes = kDataBytes + kBatchRows;

  std::byte* memory = nullptr;  ///< kBytes, aligned to 64

  [[nodiscard]] std::int64_t* numbers() const { return as<std::int64_t>(); }
  [[nodiscard]] double* reals() const { return as<double>(); }
  [[nodiscard]] std::uint8_t* truths() const { return as<std::uint8_t>(); }
  [[nodiscard]] std::string_view* texts() const { return as<std::string_view>(); }
  [[nodiscard]] std::uint8_t* nulls() const {
    return reinterpret_cast<std::uint8_t*>(memory + kDataBytes);
  }

 private:
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(memory);
  }
};

/// The rows of a batch, and which of them are selected.
struct Batch {
  const std::byte* rows = nullptr;
  std::uint32_t row_bytes = 0;
  std::uint32_t count = 0;  ///< selected rows
  std::size_t ahead = 0;    ///< bytes from a row to one of the next batch; 0: there is none
  bool dense = true;        ///< these are the first `count`; else those that `selected` numbers
  std::uint16_t selected[kBatchRows];

  [[nodiscard]] std::uint32_t number(std::uint32_t i) const { return dense ? i : selected[i]; }
  [[nodiscard]] const std::byte* row(std::uint32_t i) const {
    return rows + std::size_t{number(i)} * row_bytes;
  }
};

struct Instruction;
using Kernel = std::uint32_t (*)(const Instruction& instruction, const Register* registers,
                                 const Batch& batch);

/// Constants of an `in`, in the representation of its register.
struct Candidates {
  std::vector<std::int64_t> numbers;  // sorted
  std::vector<double> reals;
  std::vector<std::string> texts;  // sorted
  bool null = false;
};

struct Instruction {
  Kernel kernel = nullptr;
  std::uint16_t to = 0;  ///< registers
  std::uint16_t a = 0;
  std::uint16_t b = 0;
  std::uint16_t node = 0;  ///< of the pipeline, for errors
  bool nullable = false;   ///< the result may be null
  bool a_nullable = false;
  bool b_nullable = false;
  std::int64_t a_factor = 1;  ///< powers of ten that align decimals
  std::int64_t b_factor = 1;
  const Column* column = nullptr;  ///< of loads
  std::uint32_t list = 0;          ///< of `in` and `like`: in the program
  const Candidates* candidates = nullptr;
  const LikePattern* pattern = nullptr;
  const Regex* regex = nullptr;
};

[[nodiscard]] Kernel load_kernel(ColumnType type);
/// Numbers as reals: a / a_factor.
[[nodiscard]] Kernel to_real_kernel();
/// + - *. `kind`: of the result. Decimals take both factors.
[[nodiscard]] Kernel arithmetic_kernel(wire::ExpressionKind op, wire::ValueKind kind, bool aligned);
/// = <> < <= > >=. `kind`: of both operands; decimals stand for all numbers; `aligned`: their
/// factors are 1.
[[nodiscard]] Kernel compare_kernel(wire::ExpressionKind op, wire::ValueKind kind, bool aligned);
/// and, or, not, is null.
[[nodiscard]] Kernel logic_kernel(wire::ExpressionKind op);
[[nodiscard]] Kernel in_kernel(wire::ValueKind kind);
[[nodiscard]] Kernel like_kernel();
/// kinds/table/batch_regex.cpp
[[nodiscard]] Kernel regex_kernel();

/// Fills a register with a constant.
void fill(const Register& to, const Constant& constant);

/// Deselects the rows of a batch whose condition is not true.
void select(Batch& batch, const Register& condition);

}  // namespace espalier::table
