// SPDX-License-Identifier: Apache-2.0
// One run of a compiled pipeline, as a resumable sequence of steps.
//
//   BatchRun run(program, source, sink, {.seed = seed});
//   for (;;) {
//     const RunState state = run.step(4096);
//     if (state == RunState::stalled) ...   // the sink has no room: step again when it has
//     if (state != RunState::running) break;
//   }
//
// Memory is bounded: registers of batches, and `group_bytes` for groups or distinct rows. When
// groups do not fit, all are sent as partial groups, and grouping starts over. Distinct rows that
// do not fit are sent, possibly repeated. ResultMerge makes the answer exact.
//
// Destroying a run cancels it. Cost: a step takes time linear in its rows, and grows the table of
// groups at most once; it ends early if that is not enough.
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kinds/table/batch_aggregate.hpp"
#include "kinds/table/batch_pack.hpp"
#include "kinds/table/batch_program.hpp"
#include "kinds/table/decrypted_rows.hpp"
#include "kinds/table/direct_rows.hpp"
#include "kinds/table/group_table.hpp"
#include "kinds/table/run.hpp"

namespace espalier::table {

struct RunOptions {
  std::size_t group_bytes = std::size_t{64} << 20;  ///< at least GroupTable::kBytesMin
  std::uint64_t seed = 0;                           ///< of hashes; keep it secret
  base::Isa isa = base::isa();                      ///< the best instruction set that may be used
  /// Decrypts the rows, if the pipeline does; it outlives the run.
  CtrCipher* decrypt = nullptr;
};

enum class RunState : std::uint8_t {
  running,  ///< there is more to do
  stalled,  ///< the sink has no room for a row
  done,
  failed,  ///< see error(); rows sent are no valid answer
};

struct RunNumbers {
  std::uint64_t rows_read = 0;
  std::uint64_t rows_passed = 0;  ///< passed all filters
  std::uint64_t rows_sent = 0;
  std::uint64_t bytes_read = 0;   ///< by the node: whole rows, or their wanted lines
  std::uint64_t flushes = 0;      ///< times that the groups did not fit
  std::uint64_t unsure_rows = 0;  ///< sent by distinct, possibly repeated
  std::uint64_t direct_rows = 0;  ///< added to their groups directly from the table
  std::uint64_t growths = 0;      ///< of the table of groups; at most one in each step
};

class BatchRun {
 public:
  /// Requires: all three outlive it.
  BatchRun(const BatchProgram& program, RowSource& source, RowSink& sink,
           const RunOptions& options);

  /// Reads at most about so many rows, or sends at most so many groups.
  RunState step(std::uint32_t rows_max);

  /// Requires: step() returned failed.
  [[nodiscard]] const RunError& error() const { return *error_; }
  [[nodiscard]] const RunNumbers& numbers() const { return numbers_; }
  /// Current memory of registers and groups.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  enum class Phase : std::uint8_t {
    reading,   // ready for the next batch
    emitting,  // sends rows of the batch, from position_ on
    grouping,  // adds rows of the batch to groups, from position_ on
    flushing,  // sends groups, from flushed_ on
    done,
    failed,
  };

  void choose_range_copy(base::Isa isa);
  bool next_span();
  bool next_batch(std::uint32_t rows_max);
  bool copy_ranges(std::uint32_t rows_max);
  void run_stage(const Stage& stage);
  void prefetch(const std::vector<std::uint32_t>& lines) const;
  void prefetch_ahead(std::uint32_t rows) const;
  void decrypt_batch();
  void begin_items();
  [[nodiscard]] bool is_paused() const { return groups_ && groups_->is_paused(); }
  /// The phases. False: the sink has no room.
  bool emit();
  bool emit_distinct();
  [[nodiscard]] RowSpan rows_ahead() const;
  [[nodiscard]] bool takes_rows_as_they_are() const { return direct_sums_ && groups_->is_direct(); }
  [[nodiscard]] DirectRows direct_rows() const;
  void load_items();
  bool find_distinct();
  bool flush(std::uint32_t groups_max);
  void group();
  std::uint32_t find_groups(std::uint32_t count);
  void end_batch();
  void end_of_rows();
  void fail(RunError error);
  [[nodiscard]] bool is_full() const {
    return pipeline_.limit && !pipeline_.grouped && certain_rows_ >= *pipeline_.limit;
  }

  const BatchProgram& program_;
  const Pipeline& pipeline_;
  RowSource& source_;
  RowSink& sink_;
  BatchAggregates aggregates_;
  BatchPacker packer_;
  std::vector<std::byte> memory_;  // of registers
  std::vector<Register> registers_;
  std::optional<RangeCopy> range_copy_;  // where rows only are filtered by it
  std::optional<GroupTable> groups_;
  std::optional<DirectSums> direct_sums_;  // where keys and aggregates are no more than these
  bool items_loaded_ = false;              // of the batch, into registers
  std::vector<std::byte> scratch_;         // packed rows, or keys, of one part of a batch
  std::uint32_t scratch_rows_ = 0;
  std::optional<DecryptedRows> decrypted_;
  std::uint32_t key_stride_ = 0;       // in it; of keys that are words less than a row's
  std::byte* row_groups_[kBatchRows];  // of the rows in scratch_

  Phase phase_ = Phase::reading;
  RowSpan span_;               // from the source
  std::uint32_t span_at_ = 0;  // rows of it that were read
  Batch batch_;
  std::uint64_t batch_first_ = 0;  // its first row's number in the table
  std::uint32_t position_ = 0;
  std::uint32_t packed_from_ = 0;  // rows of the batch in scratch_
  std::uint32_t packed_to_ = 0;
  std::size_t kept_ = 0;  // distinct rows of the table already sent
  std::size_t flushed_ = 0;
  bool at_end_ = false;
  std::uint64_t certain_rows_ = 0;   // sent, and not repeated
  std::optional<RunError> pending_;  // of a row after the selected ones
  std::optional<RunError> error_;
  RunNumbers numbers_;
};

}  // namespace espalier::table
