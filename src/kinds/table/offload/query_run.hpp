// SPDX-License-Identifier: Apache-2.0
// A query's run beside the memory, in steps on helper threads: from the bytes of a pipeline to rows
// in a stage, which the scheduler sends and clears before the run continues.
//
// The stage is small enough to stay in a core's cache. A run neither blocks nor allocates in
// proportion to its table; RunOptions bound its memory.
//
// Thread: one at a time: that of a helper, or that of the scheduler while no helper has it;
// cancel() from any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/secret_memory.hpp"
#include "engine/helper_job.hpp"
#include "espalier/error.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/offload/query_limits.hpp"
#include "kinds/table/offload/result_host.hpp"

namespace espalier::table {
class RegexCompiler;
class Table;
struct Pipeline;
}  // namespace espalier::table

namespace espalier::offload {

/// The keys of a run, which come with its request.
using SecretKeys = crypto::Secret<wire::RunKeys>;

class QueryRun {
 public:
  /// `message`: the pipeline, unchecked; it outlives the run, and so do the limits, which grant the
  /// memory for groups to the account, and the compiler. `seed`: of hashes.
  QueryRun(std::shared_ptr<const table::Table> table, std::string_view message, QueryLimits& limits,
           PrincipalAccount& account, table::RegexCompiler& regexes, std::uint64_t seed,
           std::optional<SecretKeys> keys = {});
  ~QueryRun();
  QueryRun(const QueryRun&) = delete;
  QueryRun& operator=(const QueryRun&) = delete;

  /// Runs until the step's time is over (again), there are rows to send, or the end is reached
  /// (done).
  JobStep step(StepContext& context);
  /// Ends it at its next step.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  /// The rows in the stage, and their number.
  [[nodiscard]] std::span<const std::byte> staged() const;
  /// The memory of the stage, to exchange for another one; see StagedRun::stage(). Requires: it
  /// holds rows.
  [[nodiscard]] std::vector<std::byte>& stage();
  /// Capacity of the stage. Requires: the same.
  [[nodiscard]] std::size_t stage_bytes() const;
  /// Whether rows may go into memory that others write. Requires: the same.
  [[nodiscard]] bool only_stores() const;
  /// Directs rows into these rooms in order, instead of the stage (see StagedRun::write_into()); a
  /// step ends when they are full. Requires: the same; the stage was cleared, and filled rooms were
  /// taken; at least one room.
  void write_into(std::vector<ResultRoom> rooms);
  /// A completed room.
  struct Filled {
    ResultRoom room;
    std::size_t bytes = 0;
  };
  /// Completed rooms, in the order of their rows. The caller clears this.
  [[nodiscard]] std::deque<Filled>& filled() { return filled_; }
  /// Clears the stage: its rows were sent.
  void clear_stage();
  /// Whether no more rows come into the stage.
  [[nodiscard]] bool ended() const { return ended_; }
  /// Why it failed.
  struct Failure {
    Error error;
    std::string words;
  };
  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }
  [[nodiscard]] wire::QueryNumbers numbers() const;
  /// Its working time.
  [[nodiscard]] std::uint64_t busy_ns() const { return busy_ns_; }

 private:
  bool begin();
  bool begin_ciphers(const table::Pipeline& pipeline);
  void seal_stage();
  bool next_room();
  void end_with(Error error, std::string words);

  struct Execution;  // the rows, and what the pipeline does with them

  const std::unique_ptr<Execution> execution_;
  const std::string_view message_;
  QueryLimits& limits_;
  PrincipalAccount& account_;
  table::RegexCompiler& regexes_;
  const std::uint64_t seed_;
  std::uint64_t group_bytes_ = 0;
  std::optional<SecretKeys> keys_;  // until the ciphers exist
  std::size_t sealed_bytes_ = 0;    // of the stage: encrypted
  std::vector<ResultRoom> rooms_;   // into which rows go
  std::size_t room_ = 0;            // of them: the one that is being filled
  std::deque<Filled> filled_;
  bool ended_ = false;
  std::optional<Failure> failure_;
  std::uint64_t busy_ns_ = 0;
  std::atomic<bool> cancelled_{false};
};

}  // namespace espalier::offload
