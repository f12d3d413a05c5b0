// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/batch_pack.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "kinds/table/value.hpp"

namespace espalier::table {
namespace {

using wire::ValueKind;

template <class T>
T canonical(T real, bool key) {
  if (real != real) return std::numeric_limits<T>::quiet_NaN();
  return key && real == 0 ? T{0} : real;
}

/// Copies the values of one column, `write(to, from)` each, but nulls, whose bit it sets.
template <class Write>
void copy_column(const Column& from, const Column& to, const Batch& batch, std::uint32_t first,
                 std::uint32_t count, std::byte* out, std::size_t out_bytes, Write&& write) {
  if (!from.nullable && batch.dense) {
    const std::byte* row = batch.rows + std::size_t{first} * batch.row_bytes + from.offset;
    std::byte* packed = out + to.offset;
    for (std::uint32_t i = 0; i < count; ++i, row += batch.row_bytes, packed += out_bytes) {
      write(packed, row);
    }
    return;
  }
  if (!from.nullable) {
    for (std::uint32_t i = 0; i < count; ++i) {
      write(out + i * out_bytes + to.offset, batch.row(first + i) + from.offset);
    }
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::byte* const row = batch.row(first + i);
    std::byte* const packed = out + i * out_bytes;
    if ((row[from.null_byte] & std::byte{from.null_mask}) != std::byte{0}) {
      packed[to.null_byte] |= std::byte{to.null_mask};
    } else {
      write(packed + to.offset, row + from.offset);
    }
  }
}

/// Whether all byte patterns of a type are canonical.
bool is_plain(const Column& column) {
  if (column.nullable) return false;
  switch (column.type.kind) {
    case ColumnType::i8:
    case ColumnType::i16:
    case ColumnType::i32:
    case ColumnType::i64:
    case ColumnType::decimal:
    case ColumnType::date:
    case ColumnType::timestamp:
    case ColumnType::fixed_char: return true;
    default: return false;
  }
}

template <std::size_t Bytes>
void copy_fixed(const Batch& batch, std::uint32_t first, std::uint32_t count,
                std::uint32_t from_offset, std::byte* to, std::size_t to_stride) {
  const std::byte* const from = batch.rows + from_offset;
  const std::size_t stride = batch.row_bytes;
  if (batch.dense) {
    for (std::uint32_t i = 0; i < count; ++i) {
      std::memcpy(to + i * to_stride, from + (first + i) * stride, Bytes);
    }
  } else {
    for (std::uint32_t i = 0; i < count; ++i) {
      std::memcpy(to + i * to_stride, from + batch.selected[first + i] * stride, Bytes);
    }
  }
}

/// Copies the same bytes of each row.
void copy_bytes(const Batch& batch, std::uint32_t first, std::uint32_t count,
                std::uint32_t from_offset, std::size_t bytes, std::byte* to,
                std::size_t to_stride) {
  const auto copy = [&](auto fixed) { fixed(batch, first, count, from_offset, to, to_stride); };
  switch (bytes) {
    case 1: return copy(copy_fixed<1>);
    case 2: return copy(copy_fixed<2>);
    case 4: return copy(copy_fixed<4>);
    case 8: return copy(copy_fixed<8>);
    case 16: return copy(copy_fixed<16>);
    case 24: return copy(copy_fixed<24>);
    case 32: return copy(copy_fixed<32>);
    case 64: return copy(copy_fixed<64>);
    default: break;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    std::memcpy(to + i * to_stride, batch.row(first + i) + from_offset, bytes);
  }
}

void copy_text(std::byte* to, const std::byte* from, std::size_t length) {
  const std::size_t bytes = std::min<std::size_t>(base::load_plain<std::uint16_t>(from), length);
  base::store_plain(to, static_cast<std::uint16_t>(bytes));
  std::memcpy(to + 2, from + 2, bytes);
}

/// Writes one value of a register to where its column is.
void store_value(std::byte* at, const Column& to, ValueKind kind, const Register& from,
                 std::uint32_t i, bool key) {
  switch (kind) {
    case ValueKind::boolean: base::store_plain(at, from.truths()[i]); return;
    case ValueKind::real: base::store_plain(at, canonical(from.reals()[i], key)); return;
    case ValueKind::date:
      base::store_plain(at, static_cast<std::int32_t>(from.numbers()[i]));
      return;
    case ValueKind::text: {
      const std::string_view text = from.texts()[i];
      ESPALIER_ASSERT(text.size() <= to.type.length);
      base::store_plain(at, static_cast<std::uint16_t>(text.size()));
      if (!text.empty()) std::memcpy(at + 2, text.data(), text.size());
      return;
    }
    default: base::store_plain(at, from.numbers()[i]); return;
  }
}

}  // namespace

BatchPacker::BatchPacker(const BatchProgram& program, std::vector<std::byte> blank)
    : blank_(std::move(blank)), keys_(program.pipeline().distinct || program.pipeline().grouped) {
  const Pipeline& pipeline = program.pipeline();
  ESPALIER_ASSERT(blank_.size() == pipeline.result.row_bytes());
  for (std::size_t i = 0; i < pipeline.items.size(); ++i) {
    const Item& item = pipeline.items[i];
    if (item.aggregate != wire::Aggregate::none) continue;
    const ItemSource& source = program.sources()[i];
    pieces_.push_back({&pipeline.result.column(item.first_column),
                       source.loaded ? nullptr : source.column, source.reg, item.argument.kind,
                       item.argument.nullable, 0});
  }
  merge_pieces(pipeline.schema);
}

/// Columns side by side that are copied as they are become one piece.
void BatchPacker::merge_pieces(const Schema& schema) {
  std::vector<Piece> merged;
  std::size_t bytes = 0;
  for (Piece piece : pieces_) {
    if (piece.from && is_plain(*piece.from)) piece.bytes = piece.from->bytes;
    bytes += piece.bytes;
    if (piece.bytes != 0 && !merged.empty() && merged.back().bytes != 0) {
      Piece& last = merged.back();
      if (last.from->offset + last.bytes == piece.from->offset &&
          last.to->offset + last.bytes == piece.to->offset) {
        last.bytes += piece.bytes;
        continue;
      }
    }
    merged.push_back(piece);
  }
  pieces_ = std::move(merged);
  covered_ = bytes == row_bytes();
  whole_rows_ = covered_ && pieces_.size() == 1 && schema.row_bytes() == bytes;
}

void BatchPacker::pack_column(const Piece& piece, const Batch& batch, std::uint32_t first,
                              std::uint32_t count, const Out& out) const {
  const auto copy = [&](auto&& write) {
    copy_column(*piece.from, *piece.to, batch, first, count, out.rows, out.row_bytes, write);
  };
  const std::size_t length = piece.from->type.length;
  const bool key = keys_;
  switch (piece.from->type.kind) {
    case ColumnType::i8: copy([](std::byte* to, const std::byte* from) { *to = *from; }); return;
    case ColumnType::i16:
      copy([](std::byte* to, const std::byte* from) { std::memcpy(to, from, 2); });
      return;
    case ColumnType::i32:
    case ColumnType::date:
      copy([](std::byte* to, const std::byte* from) { std::memcpy(to, from, 4); });
      return;
    case ColumnType::i64:
    case ColumnType::decimal:
    case ColumnType::timestamp:
      copy([](std::byte* to, const std::byte* from) { std::memcpy(to, from, 8); });
      return;
    case ColumnType::f32:
      copy([=](std::byte* to, const std::byte* from) {
        base::store_plain(to, canonical(base::load_plain<float>(from), key));
      });
      return;
    case ColumnType::f64:
      copy([=](std::byte* to, const std::byte* from) {
        base::store_plain(to, canonical(base::load_plain<double>(from), key));
      });
      return;
    case ColumnType::boolean:
      copy([](std::byte* to, const std::byte* from) { *to = std::byte{*from != std::byte{0}}; });
      return;
    case ColumnType::fixed_char:
      copy([=](std::byte* to, const std::byte* from) { std::memcpy(to, from, length); });
      return;
    case ColumnType::text:
      copy([=](std::byte* to, const std::byte* from) { copy_text(to, from, length); });
      return;
    case ColumnType::invalid: break;
  }
  std::unreachable();
}

void BatchPacker::pack_register(const Piece& piece, const Register& from, std::uint32_t first,
                                std::uint32_t count, const Out& out) const {
  for (std::uint32_t i = 0; i < count; ++i) {
    std::byte* const packed = out[i];
    if (piece.nullable && from.nulls()[first + i] != 0) {
      packed[piece.to->null_byte] |= std::byte{piece.to->null_mask};
    } else {
      store_value(packed + piece.to->offset, *piece.to, piece.kind, from, first + i, keys_);
    }
  }
}

void BatchPacker::pack_pieces(const Register* registers, const Batch& batch, std::uint32_t first,
                              std::uint32_t count, const Out& out) const {
  for (const Piece& piece : pieces_) {
    if (piece.bytes != 0) {
      copy_bytes(batch, first, count, piece.from->offset, piece.bytes, out.rows + piece.to->offset,
                 out.row_bytes);
    } else if (piece.from) {
      pack_column(piece, batch, first, count, out);
    } else {
      pack_register(piece, registers[piece.reg], first, count, out);
    }
  }
}

void BatchPacker::pack(const Register* registers, const Batch& batch, std::uint32_t first,
                       std::uint32_t count, std::byte* out) const {
  for (std::uint32_t i = 0; i < count && !covered_; ++i) {
    std::memcpy(out + i * row_bytes(), blank_.data(), row_bytes());
  }
  pack_pieces(registers, batch, first, count, {out, row_bytes()});
}

void BatchPacker::pack_begins(const Register* registers, const Batch& batch, std::uint32_t first,
                              std::uint32_t count, std::uint32_t bytes, std::byte* out) const {
  std::memset(out, 0, std::size_t{count} * bytes);
  pack_pieces(registers, batch, first, count, {out, bytes});
}

}  // namespace espalier::table
