// SPDX-License-Identifier: Apache-2.0
// A run whose rows go into a stage: small enough to stay in a core's cache, taken and cleared
// before the run continues.
//
//   StagedRun run(pipeline, source, options);
//   for (;;) {
//     const RunState state = run.step(4096);
//     if (state == RunState::running) continue;
//     if (state == RunState::failed) ...
//     use(run.rows());                          // stalled: the stage is full; done: the last ones
//     run.clear();
//     if (state == RunState::done) break;
//   }
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kinds/table/batch_program.hpp"
#include "kinds/table/batch_run.hpp"
#include "kinds/table/pipeline.hpp"
#include "kinds/table/format/table_calls.hpp"

namespace espalier::table {

class StagedRun {
 public:
  static constexpr std::size_t kStageBytes = std::size_t{64} << 10;

  /// Requires: `source` outlives it.
  StagedRun(Pipeline pipeline, RowSource& source, const RunOptions& options);
  StagedRun(const StagedRun&) = delete;
  StagedRun& operator=(const StagedRun&) = delete;

  /// As BatchRun::step.
  RunState step(std::uint32_t rows_max);
  /// Rows for one step, after which the caller checks the clock: as many as took some tens of
  /// microseconds before, at most 64 KiB. Fewer with grouping, where each row is a cache miss, and
  /// with patterns, where the cost of one row does not predict the next.
  [[nodiscard]] std::uint32_t step_rows() const { return step_rows_; }
  /// End of the last step, by base::monotonic_ns().
  [[nodiscard]] std::uint64_t stepped_ns() const { return stepped_ns_; }

  /// Directs rows to this memory from now on, instead of the stage; empty: back to the stage.
  /// Aligned to 8; never read. Requires: only_stores(); the stage was taken; the memory lives until
  /// the next call.
  void write_into(std::span<std::byte> memory) { into_ = memory; }
  /// Whether rows may go into memory that others write, because they are never read back.
  [[nodiscard]] bool only_stores() const { return only_stores_; }

  /// The rows in the stage.
  [[nodiscard]] std::span<const std::byte> rows() const { return place().first(used_); }
  /// The stage after its first `from` bytes, to be changed in place.
  [[nodiscard]] std::span<std::byte> rows_behind(std::size_t from) {
    return place().first(used_).subspan(from);
  }
  /// Bytes of rows taken before.
  [[nodiscard]] std::uint64_t bytes_taken() const { return bytes_sent_; }
  /// Clears the stage after it was taken.
  void clear();
  /// The stage itself, its rows in front, to be exchanged for another buffer, possibly empty,
  /// before clear(): to keep rows while the run continues.
  [[nodiscard]] std::vector<std::byte>& stage() { return stage_; }
  [[nodiscard]] std::size_t stage_bytes() const { return stage_bytes_; }
  [[nodiscard]] const Pipeline& pipeline() const { return program_.pipeline(); }
  /// Requires: step() returned failed.
  [[nodiscard]] const RunError& error() const { return run_.error(); }
  /// Statistics so far; the caller adds the time.
  [[nodiscard]] wire::QueryNumbers numbers() const;

 private:
  class Stage final : public RowSink {
   public:
    explicit Stage(StagedRun& run) : run_(run) {}
    std::span<std::byte> room() override { return run_.place().subspan(run_.used_); }
    void commit(std::size_t, std::size_t bytes) override { run_.used_ += bytes; }

   private:
    StagedRun& run_;
  };

  void measure(std::uint64_t rows, std::uint64_t ns);
  [[nodiscard]] std::span<const std::byte> place() const {
    return into_.empty() ? std::span(stage_) : std::span<const std::byte>(into_);
  }
  [[nodiscard]] std::span<std::byte> place() { return into_.empty() ? std::span(stage_) : into_; }

  const BatchProgram program_;
  const bool only_stores_;
  const std::size_t stage_bytes_;
  std::vector<std::byte> stage_;
  std::span<std::byte> into_;  // instead of the stage; empty: none
  std::size_t used_ = 0;
  Stage sink_{*this};
  BatchRun run_;
  const std::uint32_t step_rows_max_;
  std::uint32_t step_rows_;
  std::uint64_t stepped_ns_ = 0;
  std::uint64_t bytes_sent_ = 0;      // bytes cleared
  std::uint64_t memory_bytes_ = 0;    // peak
};

/// The error of a failed run for its client: the source's error, or invalid_argument for an
/// expression.
[[nodiscard]] inline Error error_of(const RunError& error) {
  return error.source.code != Code::invalid ? error.source : Error{Code::invalid_argument, 0, 0};
}

}  // namespace espalier::table
