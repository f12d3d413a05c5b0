// SPDX-License-Identifier: Apache-2.0
// The reduction of bags of rows, in steps, whose rows are whole whoever replaces them meanwhile.
//
//   rows  ... | a run's rows, 16 at most | soon: to L1 | later: resolved, and asked for to L2 |
//               summed in registers          gather_distances.hpp
//
// Which rows bags read and where these lie a RowWindow says, far ahead of their turn. A step is
// some runs. A run looks at the sequence of each row's page, folds, and looks at them again; where
// one was odd or has moved, nothing of the run counts and it is done again. What comes before a
// run, in a bag that began earlier, is kept apart from what comes after it, so a run can be
// repeated as often as it must. After kTriesMax attempts it keeps replacements out: readers of a
// page that is replaced without a pause come to an end.
//
// Of a table with groups, unweighted sums, means and inner products read sums in place of rows
// (memo.hpp). A sum whose page has an odd sequence is put back into its rows, at once: readers do
// not wait for a replacement to compute it.
//
// Invariants
// 1. Each row that went into a result was whole, and each sum that of whole rows. Rows of one bag
//    may be of different moments.
// 2. The rows are those that the table had when the reduction began; appended ones are not seen.
//
// Thread: one at a time. The table, the bags and the room for results outlive it.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "espalier/embedding_types.hpp"
#include "espalier/error.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/gather.hpp"
#include "kinds/embedding/reduction_work.hpp"
#include "kinds/embedding/row_window.hpp"

namespace espalier::embedding {

class Reducer {
 public:
  static constexpr std::uint32_t kStepRows = RowWindow::kStepRows;
  static constexpr std::size_t kStepBags = RowWindow::kStepBags;
  /// Of a step's rows so many are folded between two looks at sequences: while others are resolved
  /// and looked at nothing is asked for, and with so few memory does not run dry meanwhile.
  static constexpr std::uint32_t kRunRows = 16;
  static constexpr int kTriesMax = 8;

  /// Whether sums of groups may stand for rows.
  [[nodiscard]] static bool reads_sums(const ReductionWork& work);

  /// Requires: no fault_of_work(); `results` has room for result_width() floats of each bag.
  Reducer(const EmbeddingTable& table, const ReductionWork& work, std::span<float> results,
          const GatherKit& kit = gather_kit(base::isa()));
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Resolves the first rows and asks for them. Errors: WrongId, and no results.
  std::expected<void, WrongId> begin();
  /// Folds up to kStepRows rows of some hundred bags. Returns whether there is more to do;
  /// results are there when there is not. Errors: WrongId, and no results.
  /// Requires: begin() was called, and went well.
  std::expected<bool, WrongId> step();

  [[nodiscard]] const ReductionCounts& counts() const { return counts_; }

 private:
  using Sequences = std::array<std::uint64_t, kRunRows>;
  enum class Look : std::uint8_t { even, replaced, sum_replaced };
  /// Rows of one bag in this run.
  struct Rows {
    std::uint32_t place;  // in the window
    std::uint32_t count;  // not 0
    const float* weights;
  };

  std::expected<bool, WrongId> run();
  [[nodiscard]] std::uint32_t choose_rows();
  template <bool kSums, class Take>
  void for_sequences(const PageList& list, std::uint32_t rows, const Take& take) const;
  [[nodiscard]] Look read_sequences(const PageList& list, std::uint32_t rows,
                                    Sequences& sequences) const;
  [[nodiscard]] bool are_as_before(const PageList& list, std::uint32_t rows,
                                   const Sequences& sequences) const;
  std::uint32_t fold_whole();
  void fold_rows(std::uint32_t rows);
  void fold_bag(Rows of, const float* before, float* to);
  void fold_run(Rows of, bool sums, const float* before, float* to);
  void count(std::uint32_t rows);

  const EmbeddingTable& table_;
  const ReductionWork work_;
  const std::span<float> results_;
  const std::uint32_t dimension_;
  const GatherKernel kernel_;
  const GatherKernel sum_kernel_;
  const GatherDistances distances_ = GatherDistances::of_machine();
  RowWindow window_;
  std::size_t bag_ = 0;       // to which the first row of this run belongs
  std::size_t bags_end_ = 0;  // behind the last bag of this run
  // What the bag's rows before this run came to, and what comes after it; then whole bags, and
  // what runs of rows and sums come to in turns.
  std::vector<float> carried_;
  bool carries_ = false;       // the bag began before this run
  bool carries_next_ = false;  // as this run finds it, and the bag it ends in
  std::size_t bag_next_ = 0;
  std::uint32_t half_ = 0;  // which part of carried_ is that before
  ReductionCounts counts_;
};

/// All of it. Cost: as many lines as the rows have. Errors: WrongId, and what `results` has then is
/// of no use. Requires: as Reducer.
std::expected<void, WrongId> reduce(const EmbeddingTable& table, const ReductionWork& work,
                                    std::span<float> results);

}  // namespace espalier::embedding
