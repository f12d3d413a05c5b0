// SPDX-License-Identifier: Apache-2.0
// Rows in memory as a source of runs, and a sink that keeps what comes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kinds/table/pipeline.hpp"
#include "kinds/table/run.hpp"
#include "kinds/table/value.hpp"

namespace espalier::table {

/// Rows of a schema, made value by value.
class MemoryRows {
 public:
  explicit MemoryRows(Schema schema) : schema_(std::move(schema)) {}
  MemoryRows(Schema schema, std::vector<std::byte> rows)
      : schema_(std::move(schema)), rows_(std::move(rows)) {}

  /// Requires: one value for each column, which fits.
  void append(std::span<const Value> values) {
    const std::size_t begin = rows_.size();
    rows_.resize(begin + schema_.row_bytes());
    for (std::size_t i = 0; i < values.size(); ++i) {
      write_value(schema_.column(i), values[i], rows_.data() + begin);
    }
  }
  void append(std::initializer_list<Value> values) {
    append(std::span(values.begin(), values.size()));
  }

  [[nodiscard]] const Schema& schema() const { return schema_; }
  [[nodiscard]] std::size_t size() const { return rows_.size() / schema_.row_bytes(); }
  [[nodiscard]] const std::byte* row(std::size_t i) const {
    return rows_.data() + i * schema_.row_bytes();
  }

 private:
  Schema schema_;
  std::vector<std::byte> rows_;
};

/// Gives rows in pieces.
class MemorySource final : public RowSource {
 public:
  explicit MemorySource(const MemoryRows& rows, std::size_t piece_rows = 1000)
      : rows_(rows), piece_rows_(piece_rows) {}

  Result<RowSpan> next() override {
    const std::size_t count = std::min(piece_rows_, rows_.size() - next_);
    const RowSpan span{rows_.row(next_), static_cast<std::uint32_t>(count),
                       rows_.schema().row_bytes(), next_};
    next_ += count;
    return span;
  }

 private:
  const MemoryRows& rows_;
  std::size_t piece_rows_;
  std::size_t next_ = 0;
};

/// Keeps all rows; has room for so many bytes at a time, and none again until `give_room`.
class MemorySink final : public RowSink {
 public:
  explicit MemorySink(std::size_t room_bytes = std::size_t{1} << 20) : block_(room_bytes) {}

  std::span<std::byte> room() override { return std::span(block_).subspan(used_); }
  void commit(std::size_t rows, std::size_t bytes) override {
    rows_.insert(rows_.end(), block_.begin() + static_cast<std::ptrdiff_t>(used_),
                 block_.begin() + static_cast<std::ptrdiff_t>(used_ + bytes));
    used_ += bytes;
    count_ += rows;
  }
  void give_room() { used_ = 0; }

  [[nodiscard]] std::span<const std::byte> rows() const { return rows_; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::vector<std::byte> block_;
  std::size_t used_ = 0;
  std::vector<std::byte> rows_;
  std::size_t count_ = 0;
};

}  // namespace espalier::table
