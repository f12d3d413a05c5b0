// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/reducer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "kinds/embedding/planted_embedding_bugs.hpp"

namespace espalier::embedding {
namespace {

Fold fold_of(const ReductionWork& work) {
  if (work.reduction == Reduction::max) return Fold::max;
  if (work.reduction == Reduction::min) return Fold::min;
  return work.bags.weights.empty() ? Fold::add : Fold::weighted;
}

// Eight sums of every eighth product each, so that the compiler may take them together; in this
// order whatever the machine.
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

Reducer::Reducer(const EmbeddingTable& table, const ReductionWork& work, std::span<float> results,
                 const GatherKit& kit)
    : table_(table),
      work_(work),
      results_(results),
      dimension_(table.options().dimension),
      kernel_(kit.kernel(table.options().type, fold_of(work))),
      carried_(std::size_t{dimension_} * 3) {
  ESPALIER_ASSERT(results.size() ==
                  work.bags.offsets.size() * result_width(work.reduction, dimension_));
}

std::uint32_t Reducer::end_of_bag(std::size_t bag) const {
  const EmbeddingBags& bags = work_.bags;
  return bag + 1 < bags.offsets.size() ? bags.offsets[bag + 1]
                                       : static_cast<std::uint32_t>(bags.ids.size());
}

std::expected<void, WrongId> Reducer::begin() {
  rows_ = table_.rows();
  return resolve();
}

// Fills the window. Behind the last id its row stands for those that there are not: to ask for it
// again costs nothing.
std::expected<void, WrongId> Reducer::resolve() {
  const std::span<const std::uint32_t> ids = work_.bags.ids;
  const PageList list = table_.page_list();
  const PageDivider& divider = table_.divider();
  const std::uint32_t row_bytes = table_.row_bytes();
  const auto last = static_cast<std::uint32_t>(ids.size());
  const std::uint32_t end = last - next_ > window_.rows.size()
                                ? next_ + static_cast<std::uint32_t>(window_.rows.size())
                                : last;
  for (; resolved_ < end; ++resolved_) {
    const std::uint32_t id = ids[resolved_];
    if (id >= rows_) [[unlikely]] {
      return std::unexpected(WrongId{id, resolved_, rows_});
    }
    const std::uint32_t page = divider.page_of(id);
    const std::byte* const row =
        list.rows_of(page) + std::size_t{id - page * divider.rows()} * row_bytes;
    const std::uint32_t place = resolved_ - next_;
    window_.rows[place] = row;
    window_.pages[place] = page;
    if (next_ == 0) prefetch_later(row, row_bytes);
  }
  return {};
}

bool Reducer::read_sequences(const PageList& list, std::uint32_t rows, Sequences& sequences) const {
  std::uint64_t odd = 0;
  for (std::uint32_t i = 0; i < rows; ++i) {
    sequences[i] = list.sequence_of(window_.pages[i]);
    odd |= sequences[i];
  }
  return odd % 2 == 0;
}

bool Reducer::are_as_before(const PageList& list, std::uint32_t rows,
                            const Sequences& sequences) const {
  std::uint64_t differ = 0;
  for (std::uint32_t i = 0; i < rows; ++i) {
    differ |= sequences[i] ^ list.sequence_again(window_.pages[i]);
  }
  return differ == 0 && table_.is_newest(list);
}

std::expected<bool, WrongId> Reducer::step() {
  const auto ids = static_cast<std::uint32_t>(work_.bags.ids.size());
  std::uint32_t rows = std::min(kStepRows, ids - next_);
  bags_end_ = std::min(bag_ + kStepBags, work_.bags.offsets.size());
  if (bags_end_ < work_.bags.offsets.size()) {
    rows = std::min(rows, work_.bags.offsets[bags_end_] - next_);
  }
  fold_whole(rows);
  next_ += rows;
  bag_ = bag_next_;
  carries_ = carries_next_;
  half_ = 1 - half_;
  counts_.rows += rows;
  if (bag_ == work_.bags.offsets.size()) {
    counts_.bags = bag_;
    return false;
  }
  const std::uint32_t kept = resolved_ - next_;
  std::memmove(window_.rows.data(), window_.rows.data() + rows, kept * sizeof(window_.rows[0]));
  std::memmove(window_.pages.data(), window_.pages.data() + rows, kept * sizeof(window_.pages[0]));
  if (const auto resolved = resolve(); !resolved) return std::unexpected(resolved.error());
  return true;
}

void Reducer::fold_whole(std::uint32_t rows) {
  Sequences sequences;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    const PageList list = table_.page_list();
    if (!read_sequences(list, rows, sequences)) {
      base::spin_pause();
      ++counts_.rereads;
      continue;
    }
    fold_rows(rows);
    acquire_rows();
    if (are_as_before(list, rows, sequences) || planted(Bug::torn_row_believed)) return;
    ++counts_.rereads;
  }
  const auto kept_out = table_.hold_replacements();
  fold_rows(rows);
}

// Of bags that end in this step the results, of the last one perhaps a part.
void Reducer::fold_rows(std::uint32_t rows) {
  const std::uint32_t end = next_ + rows;
  float* const before = carried_.data() + std::size_t{half_} * dimension_;
  float* const after = carried_.data() + std::size_t{1 - half_} * dimension_;
  float* const whole = carried_.data() + std::size_t{2} * dimension_;
  bool carries = carries_;
  std::size_t bag = bag_;
  std::uint32_t at = next_;
  for (; bag < bags_end_; ++bag) {
    const std::uint32_t bag_end = end_of_bag(bag);
    const std::uint32_t count = std::min(bag_end, end) - at;
    const bool ends = bag_end <= end;
    const float* folded = carries ? before : nullptr;
    if (count != 0) {
      const std::uint32_t place = at - next_;
      const float* const weights =
          work_.bags.weights.empty() ? nullptr : work_.bags.weights.data() + at;
      float* const to = ends ? whole : after;
      const std::uint32_t there = resolved_ - next_;
      const auto ahead = [&](std::uint32_t rows_ahead) {
        return window_.rows.data() + std::min(place + rows_ahead, there - count);
      };
      kernel_({window_.rows.data() + place, weights, folded, to, ahead(kLaterRows),
               ahead(kSoonRows), count, dimension_, table_.row_bytes()});
      folded = to;
      at += count;
    }
    if (!ends) break;
    finish_bag(bag, folded);
    carries = false;
  }
  bag_next_ = bag;
  // A bag that goes on has all its rows so far in `after`: it cannot have been left as it was, for
  // then there would have been no rows for this step.
  carries_next_ = bag < work_.bags.offsets.size() && at != work_.bags.offsets[bag];
}

/// `folded`: null where the bag is empty, which comes to zeros.
void Reducer::finish_bag(std::size_t bag, const float* folded) {
  const std::uint32_t width = result_width(work_.reduction, dimension_);
  float* const result = results_.data() + bag * width;
  if (folded == nullptr) {
    std::fill_n(result, width, 0.0F);
  } else if (work_.reduction == Reduction::inner_product) {
    *result = product(folded, work_.vector);
  } else if (work_.reduction == Reduction::mean) {
    const auto rows = static_cast<float>(end_of_bag(bag) - work_.bags.offsets[bag]);
    for (std::uint32_t c = 0; c < width; ++c) result[c] = folded[c] / rows;
  } else {
    std::memcpy(result, folded, width * sizeof(float));
  }
}

std::expected<void, WrongId> reduce(const EmbeddingTable& table, const ReductionWork& work,
                                    std::span<float> results) {
  Reducer reducer(table, work, results);
  if (const auto begun = reducer.begin(); !begun) return begun;
  for (bool more = !work.bags.offsets.empty(); more;) {
    const auto stepped = reducer.step();
    if (!stepped) return std::unexpected(stepped.error());
    more = *stepped;
  }
  table.count(reducer.counts());
  return {};
}

}  // namespace espalier::embedding
