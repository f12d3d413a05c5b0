// SPDX-License-Identifier: Apache-2.0
// Bags out of rows that come one after the other, whole, in the order of their ids: what a reader
// elsewhere does with the rows that it has brought. Sums have the same bits as those of a Reducer
// that reads no sums of groups.
//
// Thread: one at a time. What is asked and the room for results outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kinds/embedding/gather.hpp"
#include "kinds/embedding/reduction_work.hpp"

namespace espalier::embedding {

/// How rows are folded for this.
[[nodiscard]] Fold fold_of(const ReductionWork& work);
/// The result of a bag whose rows came to `folded`; null: it is empty, which comes to zeros.
/// Requires: `results` has room for result_width() floats of each bag.
void finish_bag(const ReductionWork& work, std::uint32_t dimension, std::size_t bag,
                const float* folded, std::span<float> results);

class BagFolder {
 public:
  /// Requires: no fault_of_work(); `results` as of finish_bag().
  BagFolder(const ReductionWork& work, const EmbeddingOptions& options, std::span<float> results,
            const GatherKit& kit = gather_kit(base::isa()));
  BagFolder(const BagFolder&) = delete;
  BagFolder& operator=(const BagFolder&) = delete;

  /// The rows of the next ids. Cost: a kernel for each bag that they are of.
  void fold(std::span<const std::byte* const> rows);
  /// After the last row. Requires: rows of all ids were folded.
  void finish();

 private:
  /// Behind the last id of the bag that the next row is of.
  [[nodiscard]] std::size_t end_of_bag() const;
  void finish_bags_that_end();

  const ReductionWork work_;
  const std::uint32_t dimension_;
  const std::uint32_t row_bytes_;
  const std::span<float> results_;
  const GatherKernel kernel_;
  std::vector<float> turns_;  // what the bag's rows came to so far, in one half or the other
  std::uint32_t turn_ = 0;
  bool has_rows_ = false;  // the bag, so far
  std::size_t bag_ = 0;
  std::size_t id_ = 0;
};

}  // namespace espalier::embedding
