// SPDX-License-Identifier: Apache-2.0
// The next rows of a reduction, resolved to addresses far ahead of their turn: then ids are checked
// and lines prefetched.
//
//   ids   ... | rows of this step | rows ahead, 64 or more | not yet resolved ...
//
// In a table without groups each id is a row. With groups bags are planned in pieces
// (memo_planner.hpp), so a bag has as many rows or fewer; sums that must not be read when their
// turn comes are replaced by their rows.
//
// Rows are counted from the first one of the reduction. Thread: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>

#include "espalier/embedding_types.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/gather_distances.hpp"
#include "kinds/embedding/reduction_work.hpp"

namespace espalier::embedding {

class Memo;
struct MemoUse;
struct PlannedRow;

class RowWindow {
 public:
  static constexpr std::uint32_t kStepRows = 64;
  /// Limit on how far ahead of their turn rows are resolved.
  static constexpr std::uint32_t kAheadRows = GatherDistances::kLaterRowsMax;
  /// Limit on bags that a step ends.
  static constexpr std::uint32_t kStepBags = 256;
  /// Limit on rows that fill() prefetches, so that a turn of a node is short for any request: 2 MiB
  /// of rows in one turn would also be evicted before they are read.
  static constexpr std::uint32_t kAskedBytesMax = 128 << 10;
  /// The number of a page of sums has this bit.
  static constexpr std::uint32_t kSumPage = std::uint32_t{1} << 31;
  /// Ids of the next bags that are looked up ahead.
  static constexpr std::uint32_t kExpectedIds = 64;
  static constexpr std::uint32_t kNotPlanned = ~std::uint32_t{0};

  /// The table and the bags outlive it.
  RowWindow(const EmbeddingTable& table, const EmbeddingBags& bags,
            std::shared_ptr<const Memo> memo, MemoUse use);
  ~RowWindow();
  RowWindow(const RowWindow&) = delete;
  RowWindow& operator=(const RowWindow&) = delete;

  /// Resolves rows until enough are ahead. Errors: WrongId.
  std::expected<void, WrongId> fill();

  /// Addresses, those of this step first.
  [[nodiscard]] const std::byte* const* rows() const { return rows_ + head_; }
  /// The page of each row.
  [[nodiscard]] const std::uint32_t* pages() const { return pages_ + head_; }
  [[nodiscard]] std::uint32_t size() const { return tail_ - head_; }
  /// The number of the first of them.
  [[nodiscard]] std::uint32_t first() const { return first_; }
  /// For a bag that is not over: the end of its rows, or kNotPlanned.
  [[nodiscard]] std::uint32_t end_of_bag(std::size_t bag) const;
  [[nodiscard]] const Memo* memo() const { return memo_.get(); }

  /// Removes so many folded rows, up to the end of this bag.
  void pass(std::uint32_t rows, std::size_t next_bag);
  /// Replaces sums among the first rows by their rows: those whose page had an odd sequence.
  void put_back(std::span<const std::uint64_t> sequences);

 private:
  struct Planned;  // with groups: the window is planned in pieces, and may grow

  static constexpr std::uint32_t kPlainRoom = 2 * (kStepRows + kAheadRows);

  void ask_for(const std::byte* row, std::uint32_t row_bytes, std::uint32_t at);
  std::expected<void, WrongId> fill_plain();
  std::expected<void, WrongId> fill_planned();
  void compact();
  void resolve(const PageList& list, std::uint32_t row, std::uint32_t at);
  void resolve_sum(const PlannedRow& row, std::uint32_t at);
  void resolve_row(const PageList& list, const PlannedRow& row, std::uint32_t at);
  void take_planned(const PageList& list);
  [[nodiscard]] std::uint32_t end_of_ids(std::size_t bag) const;

  const EmbeddingTable& table_;
  const EmbeddingBags bags_;
  const std::shared_ptr<const Memo> memo_;
  const std::uint64_t table_rows_;
  const std::byte** rows_ = nullptr;
  std::uint32_t* pages_ = nullptr;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t asked_bytes_ = 0;  // since fill() or put_back() began
  std::size_t bag_ = 0;
  const std::uint32_t rows_wanted_ = kStepRows + GatherDistances::of_machine().later;
  std::array<const std::byte*, kPlainRoom> plain_rows_;
  std::array<std::uint32_t, kPlainRoom> plain_pages_;
  std::unique_ptr<Planned> planned_;
};

}  // namespace espalier::embedding
