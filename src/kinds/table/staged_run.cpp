// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/staged_run.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace espalier::table {
namespace {

// Between two looks at the clock.
constexpr std::size_t kStepBytes = std::size_t{64} << 10;
constexpr std::uint32_t kStepRows = 4096;
// So few to group that a page of groups besides is not too much.
constexpr std::uint32_t kStepRowsToGroup = 256;
constexpr std::uint32_t kStepRowsToSearch = 512;
// For each pattern of a row. A text of 1024 bytes takes some microseconds with the longest one.
constexpr std::uint32_t kStepTextsToCount = 64;
constexpr std::uint32_t kStepTextsOfLikes = 256;
// Steps begin with few rows, and take at most twice as many as the one before.
constexpr std::uint32_t kFirstRows = 64;
constexpr std::uint32_t kFirstRowsToSearch = 16;
// Rows are as many as were done in this time.
constexpr std::uint64_t kStepNs = 50'000;

std::uint32_t rows_of(std::uint32_t texts, std::size_t patterns) {
  return static_cast<std::uint32_t>(
      std::max<std::size_t>(texts / std::max<std::size_t>(patterns, 1), 1));
}

std::uint32_t most_rows(const BatchProgram& program) {
  std::uint32_t rows = kStepRows;
  if (program.pipeline().grouped || program.pipeline().distinct) rows = kStepRowsToGroup;
  if (program.has_regexes()) rows = std::min(rows, kStepRowsToSearch);
  if (program.likes() != 0) rows = std::min(rows, rows_of(kStepTextsOfLikes, program.likes()));
  if (const std::size_t counting = program.likes_that_count(); counting != 0) {
    rows = std::min(rows, rows_of(kStepTextsToCount, counting));
  }
  const std::size_t bytes = std::max<std::size_t>(program.bytes_of_row(), 1);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(kStepBytes / bytes, 1, rows));
}

std::uint32_t first_rows(const BatchProgram& program) {
  const bool searches = program.has_regexes() || program.likes() != 0;
  return searches ? rows_of(kFirstRowsToSearch, program.likes()) : kFirstRows;
}

}  // namespace

namespace {

// Nulls are set by read-modify-write of a byte shared with other columns.
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
      run_(program_, source, sink_, options),
      step_rows_max_(most_rows(program_)),
      step_rows_(std::min(step_rows_max_, first_rows(program_))) {}

// At most twice as many as the last time: texts behind these may be longer.
void StagedRun::measure(std::uint64_t rows, std::uint64_t ns) {
  if (rows == 0) return;
  const std::uint64_t wanted = rows * kStepNs / std::max<std::uint64_t>(ns, 1);
  step_rows_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      wanted, 1, std::min<std::uint64_t>(2 * std::uint64_t{step_rows_}, step_rows_max_)));
}

RunState StagedRun::step(std::uint32_t rows_max) {
  if (into_.empty() && stage_.size() != stage_bytes_)
    stage_ = std::vector<std::byte>(stage_bytes_);  // it was taken
  const std::uint64_t rows_before = run_.numbers().rows_read;
  const std::uint64_t began_ns = base::monotonic_ns();
  const RunState state = run_.step(rows_max);
  stepped_ns_ = base::monotonic_ns();
  measure(run_.numbers().rows_read - rows_before, stepped_ns_ - began_ns);
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
