// SPDX-License-Identifier: Apache-2.0
#include "tools/table_pull.hpp"

#include <fmt/format.h>

#include <utility>

#include "table/batch_program.hpp"
#include "table/batch_run.hpp"
#include "table/pipeline_builder.hpp"
#include "tools/table_place.hpp"

namespace espalier::tools {
namespace {

/// Rows as they came, piece by piece.
class Pieces final : public table::RowSource {
 public:
  Pieces(const std::vector<std::vector<std::byte>>& pieces, std::uint32_t row_bytes)
      : pieces_(pieces), row_bytes_(row_bytes) {}

  Result<table::RowSpan> next() override {
    if (next_ == pieces_.size()) return table::RowSpan{};
    const std::vector<std::byte>& piece = pieces_[next_++];
    const auto count = static_cast<std::uint32_t>(piece.size() / row_bytes_);
    const table::RowSpan span{piece.data(), count, row_bytes_, first_row_};
    first_row_ += count;
    return span;
  }

 private:
  const std::vector<std::vector<std::byte>>& pieces_;
  const std::uint32_t row_bytes_;
  std::size_t next_ = 0;
  std::uint64_t first_row_ = 0;
};

class Buffer final : public table::RowSink {
 public:
  explicit Buffer(std::size_t row_bytes) : bytes_(std::max(kBytes, row_bytes)) {}
  std::span<std::byte> room() override { return std::span(bytes_).subspan(used_); }
  void commit(std::size_t, std::size_t bytes) override { used_ += bytes; }
  [[nodiscard]] std::span<const std::byte> rows() const { return std::span(bytes_).first(used_); }
  void clear() { used_ = 0; }

 private:
  static constexpr std::size_t kBytes = std::size_t{64} << 10;
  std::vector<std::byte> bytes_;
  std::size_t used_ = 0;
};

wire::QueryNumbers numbers_of(const table::BatchRun& run) {
  wire::QueryNumbers numbers{};
  numbers.rows_read = run.numbers().rows_read;
  numbers.rows_passed = run.numbers().rows_passed;
  numbers.rows_sent = run.numbers().rows_sent;
  numbers.bytes_read = run.numbers().bytes_read;
  numbers.flushes = run.numbers().flushes;
  numbers.memory_bytes = run.memory_bytes();
  return numbers;
}

}  // namespace

table::PipelineResult<std::vector<std::byte>> whole_table(const table::Schema& schema,
                                                          bool encrypted) {
  table::PipelineBuilder builder;
  if (encrypted) builder.decrypt();
  std::vector<table::PipelineBuilder::NodeId> columns;
  for (std::size_t i = 0; i < schema.columns().size(); ++i) columns.push_back(builder.column(i));
  builder.project(columns);
  return builder.finish();
}

Outcome<Pulled> pull_and_run(client::RemoteTables& tables, const client::TableInfo& table,
                             const table::Pipeline& pipeline,
                             const client::RemoteTables::RowSink& sink) {
  const auto message = whole_table(table.schema);
  if (!message) return failed("cannot read the table: " + message.error().message());
  std::vector<std::vector<std::byte>> pieces;
  Pulled pulled;
  const auto read =
      tables.query(table, table.schema.row_bytes(), *message, [&](std::span<const std::byte> rows) {
        pieces.emplace_back(rows.begin(), rows.end());
        pulled.bytes_received += rows.size();
        return true;
      });
  if (!read) return refused(fmt::format("read table '{}'", table.name), read.error());
  const table::BatchProgram program(pipeline);
  Pieces source(pieces, table.schema.row_bytes());
  Buffer buffer(pipeline.result.row_bytes());
  table::BatchRun run(program, source, buffer, {});
  constexpr std::uint32_t kRowsAtOnce = 4096;
  for (;;) {
    const table::RunState state = run.step(kRowsAtOnce);
    if (state == table::RunState::running) continue;
    if (state == table::RunState::failed) return failed(run.error().message());
    const bool wanted = buffer.rows().empty() || sink(buffer.rows());
    buffer.clear();
    if (state == table::RunState::done || !wanted) break;
  }
  pulled.numbers = numbers_of(run);
  return pulled;
}

}  // namespace espalier::tools
