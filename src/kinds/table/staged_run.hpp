// SPDX-License-Identifier: Apache-2.0
// A run whose rows go into a stage: small enough to stay in a core's cache, taken and cleared
// before the run goes on.
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

  /// Requires: `source` lives as long.
  StagedRun(Pipeline pipeline, RowSource& source, const RunOptions& options);
  StagedRun(const StagedRun&) = delete;
  StagedRun& operator=(const StagedRun&) = delete;

  /// As BatchRun::step.
  RunState step(std::uint32_t rows_max);
  /// Rows that a step should take, after which the clock is looked at: as many as took some tens of
  /// microseconds before, but no more than 64 KiB; fewer where they go to groups, which are cache
  /// misses each, and where patterns are searched, whose cost one row says nothing of for the next.
  [[nodiscard]] std::uint32_t step_rows() const { return step_rows_; }
  /// When the last step ended, by base::monotonic_ns().
  [[nodiscard]] std::uint64_t stepped_ns() const { return stepped_ns_; }

  /// Rows go there from now on, and no more into the stage; none: into the stage again. Aligned to
  /// 8; it is never read. Requires: only_stores(), the stage was taken; until the next call it is
  /// there.
  void write_into(std::span<std::byte> memory) { into_ = memory; }
  /// Whether rows can go into memory that others change: nothing of them is read again.
  [[nodiscard]] bool only_stores() const { return only_stores_; }

  /// What the stage holds.
  [[nodiscard]] std::span<const std::byte> rows() const { return place().first(used_); }
  /// Its end, behind `from` bytes, to be changed in place.
  [[nodiscard]] std::span<std::byte> rows_behind(std::size_t from) {
    return place().first(used_).subspan(from);
  }
  /// Bytes of rows that were taken before.
  [[nodiscard]] std::uint64_t bytes_taken() const { return bytes_sent_; }
  /// The stage was taken.
  void clear();
  /// The stage itself, its rows in front, to be taken for another one, perhaps an empty one, before
  /// clear(): where rows are to stay as they are while the run goes on.
  [[nodiscard]] std::vector<std::byte>& stage() { return stage_; }
  [[nodiscard]] std::size_t stage_bytes() const { return stage_bytes_; }
  [[nodiscard]] const Pipeline& pipeline() const { return program_.pipeline(); }
  /// Requires: step() said that it failed.
  [[nodiscard]] const RunError& error() const { return run_.error(); }
  /// What it did so far; the time is the caller's to say.
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
  std::span<std::byte> into_;  // in place of it; empty: none
  std::size_t used_ = 0;
  Stage sink_{*this};
  BatchRun run_;
  const std::uint32_t step_rows_max_;
  std::uint32_t step_rows_;
  std::uint64_t stepped_ns_ = 0;
  std::uint64_t bytes_sent_ = 0;      // that were cleared
  std::uint64_t memory_bytes_ = 0;    // the most that it needed
};

/// What a failed run ends with, for those who asked for it: the source's error, or that of an
/// expression, an invalid argument.
[[nodiscard]] inline Error error_of(const RunError& error) {
  return error.source.code != Code::invalid ? error.source : Error{Code::invalid_argument, 0, 0};
}

}  // namespace espalier::table
