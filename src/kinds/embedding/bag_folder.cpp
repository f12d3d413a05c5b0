// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/bag_folder.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/assert.hpp"
#include "kinds/embedding/format.hpp"

namespace espalier::embedding {
namespace {

// Eight partial sums of every eighth product each, so that the compiler may vectorise them; the
// order is the same on all machines.
float product(const float* a, std::span<const float> b) {
  std::array<float, 8> sums{};
  for (std::size_t i = 0; i < b.size(); i += 8) {
    for (std::size_t j = 0; j < 8; ++j) sums[j] += a[i + j] * b[i + j];
  }
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

}  // namespace

Fold fold_of(const ReductionWork& work) {
  if (work.reduction == Reduction::max) return Fold::max;
  if (work.reduction == Reduction::min) return Fold::min;
  return work.bags.weights.empty() ? Fold::add : Fold::weighted;
}

void finish_bag(const ReductionWork& work, std::uint32_t dimension, std::size_t bag,
                const float* folded, std::span<float> results) {
  const std::uint32_t width = result_width(work.reduction, dimension);
  float* const result = results.data() + bag * width;
  if (folded == nullptr) {
    std::fill_n(result, width, 0.0F);
  } else if (work.reduction == Reduction::inner_product) {
    *result = product(folded, work.vector);
  } else if (work.reduction == Reduction::mean) {
    const std::size_t end =
        bag + 1 < work.bags.offsets.size() ? work.bags.offsets[bag + 1] : work.bags.ids.size();
    const auto rows = static_cast<float>(end - work.bags.offsets[bag]);
    for (std::uint32_t c = 0; c < width; ++c) result[c] = folded[c] / rows;
  } else {
    std::memcpy(result, folded, width * sizeof(float));
  }
}

BagFolder::BagFolder(const ReductionWork& work, const EmbeddingOptions& options,
                     std::span<float> results, const GatherKit& kit)
    : work_(work),
      dimension_(options.dimension),
      row_bytes_(row_bytes_of(options.type, options.dimension)),
      results_(results),
      kernel_(kit.kernel(options.type, fold_of(work))),
      turns_(std::size_t{dimension_} * 2) {
  ESPALIER_ASSERT(results.size() ==
                  work.bags.offsets.size() * result_width(work.reduction, dimension_));
}

std::size_t BagFolder::end_of_bag() const {
  return bag_ + 1 < work_.bags.offsets.size() ? work_.bags.offsets[bag_ + 1]
                                              : work_.bags.ids.size();
}

void BagFolder::finish_bags_that_end() {
  for (; bag_ < work_.bags.offsets.size() && end_of_bag() == id_; ++bag_) {
    finish_bag(work_, dimension_, bag_,
               has_rows_ ? turns_.data() + std::size_t{turn_} * dimension_ : nullptr, results_);
    has_rows_ = false;
  }
}

void BagFolder::fold(std::span<const std::byte* const> rows) {
  ESPALIER_ASSERT(rows.size() <= work_.bags.ids.size() - id_);
  while (!rows.empty()) {
    finish_bags_that_end();
    const std::size_t some = std::min(rows.size(), end_of_bag() - id_);
    const float* const before = turns_.data() + std::size_t{turn_} * dimension_;
    float* const after = turns_.data() + std::size_t{1 - turn_} * dimension_;
    const float* const weights =
        work_.bags.weights.empty() ? nullptr : work_.bags.weights.data() + id_;
    // They were just read, so they are in the cache.
    kernel_({rows.data(), weights, has_rows_ ? before : nullptr, after, rows.data(), rows.data(),
             static_cast<std::uint32_t>(some), dimension_, row_bytes_});
    turn_ = 1 - turn_;
    has_rows_ = true;
    id_ += some;
    rows = rows.subspan(some);
  }
}

void BagFolder::finish() {
  finish_bags_that_end();
  ESPALIER_ASSERT(bag_ == work_.bags.offsets.size());
}

}  // namespace espalier::embedding
