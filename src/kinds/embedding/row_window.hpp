// SPDX-License-Identifier: Apache-2.0
// The next rows of a reduction, resolved to addresses far ahead of their turn: that is when ids are
// checked and lines asked for.
//
//   ids   ... | rows of this step | rows ahead, 64 or more | not yet resolved ...
//
// Of a table without groups each id is a row. With groups bags are planned piece by piece
// (memo_planner.hpp), so a bag has as many rows or fewer; sums that must not be read when their
// turn comes are put back into the rows that they are made of.
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
  /// How far ahead of their turn rows are resolved at most.
  static constexpr std::uint32_t kAheadRows = GatherDistances::kLaterRowsMax;
  /// Bags that a step ends at most.
  static constexpr std::uint32_t kStepBags = 256;
  /// Of rows that fill() asks for, so that a turn of a node is short whatever it is asked: 2 MiB of
  /// rows in one turn would also be gone from the cache before they are read.
  static constexpr std::uint32_t kAskedBytesMax = 128 << 10;
  /// The number of a page of sums has this bit.
  static constexpr std::uint32_t kSumPage = std::uint32_t{1} << 31;
  /// Of the next bags so many ids are looked up soon.
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

  /// Those of this step first.
  [[nodiscard]] const std::byte* const* rows() const { return rows_ + head_; }
  /// On which page each lies.
  [[nodiscard]] const std::uint32_t* pages() const { return pages_ + head_; }
  [[nodiscard]] std::uint32_t size() const { return tail_ - head_; }
  /// Which row the first of them is.
  [[nodiscard]] std::uint32_t first() const { return first_; }
  /// Of a bag that is not over: the row behind its last one, or kNotPlanned.
  [[nodiscard]] std::uint32_t end_of_bag(std::size_t bag) const;
  [[nodiscard]] const Memo* memo() const { return memo_.get(); }

  /// So many rows, up to the end of this bag, were folded.
  void pass(std::uint32_t rows, std::size_t next_bag);
  /// Puts sums among the first rows back into the rows that they are made of: those whose page had
  /// an odd sequence when these were read.
  void put_back(std::span<const std::uint64_t> sequences);

 private:
  struct Planned;  // with groups: what lies in the window is planned in pieces, and may grow

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
