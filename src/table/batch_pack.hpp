// SPDX-License-Identifier: Apache-2.0
// Writes rows of a result from columns of rows and from registers.
//
// What it writes is canonical, whatever the table's bytes: zeros where nothing is, blanks behind
// chars, one NaN; for keys one zero too.
//
// Thread: immutable; safe to use from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "table/batch_program.hpp"

namespace espalier::table {

class BatchPacker {
 public:
  /// Packs the items without aggregate. `blank`: a row that has none of them yet.
  BatchPacker(const BatchProgram& program, std::vector<std::byte> blank);

  /// Packs rows `first` to `first + count` of those selected to `out`, one behind the other.
  void pack(const Register* registers, const Batch& batch, std::uint32_t first, std::uint32_t count,
            std::byte* out) const;

  [[nodiscard]] std::size_t row_bytes() const { return blank_.size(); }

 private:
  struct Piece {
    const Column* to;
    const Column* from;  // null: it lies in a register
    std::uint16_t reg;
    wire::ValueKind kind;
    bool nullable;
  };

  void pack_column(const Piece& piece, const Batch& batch, std::uint32_t first, std::uint32_t count,
                   std::byte* out) const;
  void pack_register(const Piece& piece, const Register& from, std::uint32_t first,
                     std::uint32_t count, std::byte* out) const;

  std::vector<std::byte> blank_;
  std::vector<Piece> pieces_;
  bool keys_;
};

}  // namespace espalier::table
