// SPDX-License-Identifier: Apache-2.0
// Reduces bags from whole rows that arrive in the order of their ids: used by a remote reader for
// the rows that it has read. Sums have the same bits as those of a Reducer that reads no sums of
// groups.
//
// Thread: one at a time. The work and the buffer for results outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kinds/embedding/gather.hpp"
#include "kinds/embedding/reduction_work.hpp"

namespace espalier::embedding {

/// The fold of this work's rows.
[[nodiscard]] Fold fold_of(const ReductionWork& work);
/// Stores the result of a bag whose rows fold to `folded`; null: it is empty, and its result is
/// zeros. Requires: `results` has room for result_width() floats of each bag.
void finish_bag(const ReductionWork& work, std::uint32_t dimension, std::size_t bag,
                const float* folded, std::span<float> results);

class BagFolder {
 public:
  /// Requires: no fault_of_work(); `results` as of finish_bag().
  BagFolder(const ReductionWork& work, const EmbeddingOptions& options, std::span<float> results,
            const GatherKit& kit = gather_kit(base::isa()));
  BagFolder(const BagFolder&) = delete;
  BagFolder& operator=(const BagFolder&) = delete;

  /// Folds the rows of the next ids. Cost: a kernel for each of their bags.
  void fold(std::span<const std::byte* const> rows);
  /// Ends the reduction. Requires: rows of all ids were folded.
  void finish();

 private:
  /// The end of the ids of the bag that the next row belongs to.
  [[nodiscard]] std::size_t end_of_bag() const;
  void finish_bags_that_end();

  const ReductionWork work_;
  const std::uint32_t dimension_;
  const std::uint32_t row_bytes_;
  const std::span<float> results_;
  const GatherKernel kernel_;
  std::vector<float> turns_;  // what the bag's rows fold to so far, in one half or the other
  std::uint32_t turn_ = 0;
  bool has_rows_ = false;  // the bag, so far
  std::size_t bag_ = 0;
  std::size_t id_ = 0;
};

}  // namespace espalier::embedding
