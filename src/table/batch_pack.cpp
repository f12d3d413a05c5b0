// SPDX-License-Identifier: Apache-2.0
#include "table/batch_pack.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "table/value.hpp"

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
                       item.argument.nullable});
  }
}

void BatchPacker::pack_column(const Piece& piece, const Batch& batch, std::uint32_t first,
                              std::uint32_t count, std::byte* out) const {
  const auto copy = [&](auto&& write) {
    copy_column(*piece.from, *piece.to, batch, first, count, out, row_bytes(), write);
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
                                std::uint32_t count, std::byte* out) const {
  for (std::uint32_t i = 0; i < count; ++i) {
    std::byte* const packed = out + i * row_bytes();
    if (piece.nullable && from.nulls()[first + i] != 0) {
      packed[piece.to->null_byte] |= std::byte{piece.to->null_mask};
    } else {
      store_value(packed + piece.to->offset, *piece.to, piece.kind, from, first + i, keys_);
    }
  }
}

void BatchPacker::pack(const Register* registers, const Batch& batch, std::uint32_t first,
                       std::uint32_t count, std::byte* out) const {
  for (std::uint32_t i = 0; i < count; ++i) {
    std::memcpy(out + i * row_bytes(), blank_.data(), row_bytes());
  }
  for (const Piece& piece : pieces_) {
    if (piece.from) {
      pack_column(piece, batch, first, count, out);
    } else {
      pack_register(piece, registers[piece.reg], first, count, out);
    }
  }
}

}  // namespace espalier::table
