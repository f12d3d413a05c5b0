// SPDX-License-Identifier: Apache-2.0
#include "tools/table_pull.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "kinds/table/staged_run.hpp"
#include "tools/table_place.hpp"

namespace espalier::tools {
namespace {

/// Rows as they come.
class ReadRows final : public table::RowSource {
 public:
  ReadRows(std::unique_ptr<client::TableRun> rows, std::uint32_t row_bytes)
      : rows_(std::move(rows)), row_bytes_(row_bytes) {}

  Result<table::RowSpan> next() override {
    if (at_end_) return table::RowSpan{};
    const auto came = rows_->next();
    if (!came) {
      failure_ = came.error();
      return std::unexpected(came.error().error);
    }
    at_end_ = came->empty();
    const auto count = static_cast<std::uint32_t>(came->size() / row_bytes_);
    const table::RowSpan span{came->data(), count, row_bytes_, first_row_};
    first_row_ += count;
    return span;
  }
  [[nodiscard]] std::uint64_t bytes() const { return first_row_ * row_bytes_; }
  [[nodiscard]] const std::optional<TableError>& failure() const { return failure_; }

 private:
  const std::unique_ptr<client::TableRun> rows_;
  const std::uint32_t row_bytes_;
  std::uint64_t first_row_ = 0;
  bool at_end_ = false;
  std::optional<TableError> failure_;
};

}  // namespace

Outcome<Pulled> pull_and_run(client::TableImpl& table, const table::Pipeline& pipeline,
                             const client::TableImpl::RowSink& sink) {
  const std::string what = fmt::format("read table '{}'", table.name());
  client::RunLimits limits;
  limits.within_call = true;
  auto rows = table.read({}, limits);
  if (!rows) return refused(what, rows.error());
  ReadRows source(*std::move(rows), table.schema().row_bytes());
  table::StagedRun run(pipeline, source, {});
  for (;;) {
    const table::RunState state = run.step(run.step_rows());
    if (state == table::RunState::running) continue;
    if (state == table::RunState::failed && source.failure()) {
      return refused(what, *source.failure());
    }
    if (state == table::RunState::failed) return failed(run.error().message());
    const bool wanted = run.rows().empty() || sink(run.rows());
    run.clear();
    if (state == table::RunState::done || !wanted) break;
  }
  return Pulled{run.numbers(), source.bytes()};
}

}  // namespace espalier::tools
