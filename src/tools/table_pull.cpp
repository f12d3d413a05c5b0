// SPDX-License-Identifier: Apache-2.0
#include "tools/table_pull.hpp"

#include <fmt/format.h>

#include <utility>

#include "table/pipeline_builder.hpp"
#include "table/staged_run.hpp"
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

Outcome<Pulled> pull_and_run(client::TableImpl& table, const table::Pipeline& pipeline,
                             const client::TableImpl::RowSink& sink) {
  const std::uint32_t row_bytes = table.schema().row_bytes();
  const auto message = whole_table(table.schema());
  if (!message) return failed("cannot read the table: " + message.error().message());
  std::vector<std::vector<std::byte>> pieces;
  Pulled pulled;
  const auto read = table.run(*message, row_bytes, [&](std::span<const std::byte> rows) {
    pieces.emplace_back(rows.begin(), rows.end());
    pulled.bytes_received += rows.size();
    return true;
  });
  if (!read) return refused(fmt::format("read table '{}'", table.name()), read.error());
  Pieces source(pieces, row_bytes);
  table::StagedRun run(pipeline, source, {});
  for (;;) {
    const table::RunState state = run.step(run.step_rows());
    if (state == table::RunState::running) continue;
    if (state == table::RunState::failed) return failed(run.error().message());
    const bool wanted = run.rows().empty() || sink(run.rows());
    run.clear();
    if (state == table::RunState::done || !wanted) break;
  }
  pulled.numbers = run.numbers();
  return pulled;
}

}  // namespace espalier::tools
