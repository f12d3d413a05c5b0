// SPDX-License-Identifier: Apache-2.0
// Packs rows of a result from table rows and registers.
//
// Its output is canonical, whatever the table's bytes: zeros in unused bytes, blanks after chars,
// one NaN; in keys also one zero.
//
// Thread: immutable; safe to use from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kinds/table/batch_program.hpp"

namespace espalier::table {

class BatchPacker {
 public:
  /// Packs the items without aggregates. `blank`: a row without their values.
  BatchPacker(const BatchProgram& program, std::vector<std::byte> blank);

  /// Packs rows `first` to `first + count` of the selected ones to `out`, contiguously.
  void pack(const Register* registers, const Batch& batch, std::uint32_t first, std::uint32_t count,
            std::byte* out) const;

  /// Packs only so many bytes of each row, zeros in unused bytes. Requires: all items without
  /// aggregate lie in them, null bits too.
  void pack_begins(const Register* registers, const Batch& batch, std::uint32_t first,
                   std::uint32_t count, std::uint32_t bytes, std::byte* out) const;

  /// Whether result rows equal table rows, byte for byte.
  [[nodiscard]] bool packs_whole_rows() const { return whole_rows_; }

  [[nodiscard]] std::size_t row_bytes() const { return blank_.size(); }
  [[nodiscard]] const std::byte* blank() const { return blank_.data(); }

 private:
  struct Piece {
    const Column* to;
    const Column* from;  // null: the value is in a register
    std::uint16_t reg;
    wire::ValueKind kind;
    bool nullable;
    std::uint32_t bytes;  // where these are copied as they are, of this column and those behind it
  };

  /// Destination of packed rows, and their stride.
  struct Out {
    std::byte* rows;
    std::size_t row_bytes;
    [[nodiscard]] std::byte* operator[](std::uint32_t i) const { return rows + i * row_bytes; }
  };

  void merge_pieces(const Schema& schema);
  void pack_pieces(const Register* registers, const Batch& batch, std::uint32_t first,
                   std::uint32_t count, const Out& out) const;
  void pack_column(const Piece& piece, const Batch& batch, std::uint32_t first, std::uint32_t count,
                   const Out& out) const;
  void pack_register(const Piece& piece, const Register& from, std::uint32_t first,
                     std::uint32_t count, const Out& out) const;

  std::vector<std::byte> blank_;
  std::vector<Piece> pieces_;
  bool keys_;
  bool covered_ = false;  // pieces write every byte of a row
  bool whole_rows_ = false;
};

}  // namespace espalier::table
