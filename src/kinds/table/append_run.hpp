// SPDX-License-Identifier: Apache-2.0
// One append as a resumable sequence of steps. Other appends wait until it ends; readers do not.
// Its rows become visible at the end, all of them or none.
//
//   AppendRun run(table, source, rows);
//   while (run.step() != AppendRun::Step::done) ...
//
// Destroying it before its end undoes it completely.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>

#include "catalog/redo_sink.hpp"
#include "kinds/table/table.hpp"

namespace espalier::table {

/// Rows in contiguous memory, which their owner may write concurrently.
class SpanSource final : public AppendSource {
 public:
  explicit SpanSource(std::span<const std::byte> rows) : rows_(rows) {}
  void copy(std::uint64_t offset, std::span<std::byte> into) const override;

 private:
  std::span<const std::byte> rows_;
};

class AppendRun {
 public:
  /// Approximate bytes that a step copies and checks.
  static constexpr std::size_t kStepBytes = std::size_t{64} << 10;

  enum class Step : std::uint8_t {
    again,
    busy,  ///< another append has the turn: retry later
    done,  ///< see result()
  };
  using Appended = std::expected<std::uint64_t, AppendError>;

  /// Requires: table and source outlive it. `claim`: for an encrypted table, the reservation whose
  /// slots the rows fill.
  AppendRun(Table& table, const AppendSource& source, std::uint64_t rows,
            std::optional<ReservationClaim> claim = std::nullopt);
  ~AppendRun();
  AppendRun(const AppendRun&) = delete;
  AppendRun& operator=(const AppendRun&) = delete;

  /// Waits until other appends have ended; no later step is busy.
  void wait_for_turn();
  /// Cost: one copy of kStepBytes, and another one if the table has a sink; the first step
  /// allocates new pages and reserves room in the sink.
  Step step();

  [[nodiscard]] bool ended() const { return result_.has_value(); }
  /// The number of the first row, or why nothing was appended; see Table::append() and
  /// append_reserved(). Requires: it is done.
  [[nodiscard]] const Appended& result() const { return *result_; }

 private:
  Result<void> reserve_record();
  std::uint64_t hand_over_record();
  void begin();
  void begin_unreserved();
  void begin_reserved();
  void copy_some();
  void check_rows(std::span<std::byte> copied);
  void finish();
  void fail(Error error);

  Table& table_;
  const AppendSource& source_;
  const std::uint64_t rows_;
  const std::optional<ReservationClaim> claim_;
  catalog::RedoRoom redo_;  // with the rows that were copied
  AppendTurn::Held turn_;
  std::unique_ptr<Table::Growth> growth_;
  bool counted_ = false;     // by a planted fault, before the rows are there
  std::uint64_t row_ = 0;    // rows copied so far
  std::byte* to_ = nullptr;  // destination of the next row
  std::uint64_t room_ = 0;   // rows that still fit there
  std::size_t next_page_ = 0;
  AppendError error_{{Code::invalid_argument, 0, 0}, 0, {}};
  std::optional<Appended> result_;
};

}  // namespace espalier::table
