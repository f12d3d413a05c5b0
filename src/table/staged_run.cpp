// SPDX-License-Identifier: Apache-2.0
#include "table/staged_run.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace espalier::table {
namespace {

// Some tens of microseconds; so few to group that a page of groups besides is not too much.
constexpr std::uint32_t kStepRows = 4096;
constexpr std::uint32_t kStepRowsToGroup = 256;
constexpr std::uint32_t kStepRowsToSearch = 512;
// Rows are searched as many as were done in this time.
constexpr std::uint64_t kSearchNs = 50'000;

}  // namespace

namespace {

// A null is told by setting a bit of a byte that other columns have bits in.
bool has_nulls(const Schema& result) {
  return std::ranges::any_of(result.columns(),
                             [](const Column& column) { return column.nullable; });
}

}  // namespace

StagedRun::StagedRun(Pipeline pipeline, RowSource& source, const RunOptions& options)
    : program_(std::move(pipeline)),
      only_stores_(!has_nulls(program_.pipeline().result)),
      stage_bytes_(std::max<std::size_t>(kStageBytes, program_.pipeline().result.row_bytes())),
      stage_(stage_bytes_),
      run_(program_, source, sink_, options) {}

std::uint32_t StagedRun::step_rows() const {
  if (program_.has_regexes()) return searched_rows_;
  return pipeline().grouped || pipeline().distinct ? kStepRowsToGroup : kStepRows;
}

void StagedRun::measure(std::uint64_t rows, std::uint64_t ns) {
  if (rows == 0) return;
  const std::uint64_t wanted = rows * kSearchNs / std::max<std::uint64_t>(ns, 1);
  // At most twice as many as the last time: texts behind these may be longer.
  searched_rows_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      wanted, 1, std::min<std::uint64_t>(2 * std::uint64_t{searched_rows_}, kStepRowsToSearch)));
}

RunState StagedRun::step(std::uint32_t rows_max) {
  if (into_.empty() && stage_.size() != stage_bytes_)
    stage_ = std::vector<std::byte>(stage_bytes_);  // it was taken
  const std::uint64_t rows_before = run_.numbers().rows_read;
  const base::Stopwatch watch;
  const RunState state = run_.step(rows_max);
  if (program_.has_regexes()) {
    measure(run_.numbers().rows_read - rows_before, watch.elapsed_ns());
  }
  memory_bytes_ = std::max<std::uint64_t>(memory_bytes_, run_.memory_bytes());
  return state;
}

void StagedRun::clear() {
  bytes_sent_ += used_;
  used_ = 0;
}

wire::QueryNumbers StagedRun::numbers() const {
  wire::QueryNumbers numbers{};
  const RunNumbers& of_run = run_.numbers();
  numbers.rows_read = of_run.rows_read;
  numbers.rows_passed = of_run.rows_passed;
  numbers.rows_sent = of_run.rows_sent;
  numbers.bytes_read = of_run.bytes_read;
  numbers.bytes_sent = bytes_sent_;
  numbers.flushes = of_run.flushes;
  numbers.memory_bytes = memory_bytes_;
  return numbers;
}

}  // namespace espalier::table
