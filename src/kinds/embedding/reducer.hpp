// SPDX-License-Identifier: Apache-2.0
// The reduction of bags of rows, in steps, whose rows are whole whoever replaces them meanwhile.
//
//   ids   ... | a step's rows, 64 at most | soon: 8 ahead | later: 64 to 128 ahead |
//               summed in registers         to L1           resolved, and asked for to L2
//
// Ids are resolved to addresses once, far ahead of their turn; that is when they are checked and
// their lines asked for. A step looks at the sequence of each row's page, folds, and looks at them
// again; where one was odd or has moved, nothing of the step counts and it is done again. What
// comes before a step, in a bag that began earlier, is kept apart from what comes after it, so a
// step can be repeated as often as it must. After kTriesMax attempts it keeps replacements out:
// readers of a page that is replaced without a pause come to an end.
//
// Invariants
// 1. Each row that went into a result was whole. Rows of one bag may be of different moments.
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

namespace espalier::embedding {

class Reducer {
 public:
  static constexpr std::uint32_t kStepRows = 64;
  /// Bags that a step ends at most: they may be empty.
  static constexpr std::size_t kStepBags = 256;
  /// How far ahead lines are asked for.
  static constexpr std::uint32_t kLaterRows = 64;
  static constexpr std::uint32_t kSoonRows = 8;
  static constexpr int kTriesMax = 8;

  /// Requires: no fault_of_work(); `results` has room for result_width() floats of each bag.
  Reducer(const EmbeddingTable& table, const ReductionWork& work, std::span<float> results,
          const GatherKit& kit = gather_kit(base::isa()));
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Resolves the first rows and asks for them. Errors: WrongId, and no results.
  std::expected<void, WrongId> begin();
  /// Folds up to kStepRows rows of up to kStepBags bags. Returns whether there is more to do;
  /// results are there when there is not. Errors: WrongId, and no results.
  /// Requires: begin() was called, and went well.
  std::expected<bool, WrongId> step();

  [[nodiscard]] const ReductionCounts& counts() const { return counts_; }

 private:
  /// Resolved rows: those of this step first, then those of the next ones.
  struct Window {
    std::array<const std::byte*, kStepRows + kLaterRows> rows;
    std::array<std::uint32_t, kStepRows + kLaterRows> pages;
  };
  using Sequences = std::array<std::uint64_t, kStepRows>;

  std::expected<void, WrongId> resolve();
  [[nodiscard]] bool read_sequences(const PageList& list, std::uint32_t rows,
                                    Sequences& sequences) const;
  [[nodiscard]] bool are_as_before(const PageList& list, std::uint32_t rows,
                                   const Sequences& sequences) const;
  void fold_whole(std::uint32_t rows);
  void fold_rows(std::uint32_t rows);
  void finish_bag(std::size_t bag, const float* folded);
  [[nodiscard]] std::uint32_t end_of_bag(std::size_t bag) const;

  const EmbeddingTable& table_;
  const ReductionWork work_;
  const std::span<float> results_;
  const std::uint32_t dimension_;
  const GatherKernel kernel_;
  std::uint64_t rows_ = 0;  // of the table
  Window window_;
  std::uint32_t resolved_ = 0;  // ids
  std::uint32_t next_ = 0;      // the first id of this step
  std::size_t bag_ = 0;         // to which it belongs
  std::size_t bags_end_ = 0;    // behind the last bag of this step
  // What the bag's rows before this step came to, and what comes after it.
  std::vector<float> carried_;
  bool carries_ = false;       // the bag began before this step
  bool carries_next_ = false;  // as this step finds it, and the bag it ends in
  std::size_t bag_next_ = 0;
  std::uint32_t half_ = 0;  // which part of carried_ is that before
  ReductionCounts counts_;
};

/// All of it. Cost: as many lines as the rows have. Errors: WrongId, and what `results` has then is
/// of no use. Requires: as Reducer.
std::expected<void, WrongId> reduce(const EmbeddingTable& table, const ReductionWork& work,
                                    std::span<float> results);

}  // namespace espalier::embedding
