// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/reducer.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "kinds/embedding/bag_folder.hpp"
#include "kinds/embedding/memo_planner.hpp"
#include "kinds/embedding/planted_embedding_bugs.hpp"
#include "kinds/embedding/small_reduction.hpp"

namespace espalier::embedding {
namespace {

std::shared_ptr<const Memo> memo_for(const EmbeddingTable& table, const ReductionWork& work) {
  return Reducer::reads_sums(work) || work.bags.grouping != 0 ? table.memo() : nullptr;
}

}  // namespace

bool Reducer::reads_sums(const ReductionWork& work) {
  const bool sums = work.reduction == Reduction::sum || work.reduction == Reduction::mean ||
                    work.reduction == Reduction::inner_product;
  return sums && work.bags.weights.empty();
}

Reducer::Reducer(const EmbeddingTable& table, const ReductionWork& work, std::span<float> results,
                 const GatherKit& kit)
    : table_(table),
      work_(work),
      results_(results),
      dimension_(table.options().dimension),
      kernel_(kit.kernel(table.options().type, fold_of(work))),
      sum_kernel_(kit.kernel(EmbeddingType::fp32, Fold::add)),
      window_(table, work.bags, memo_for(table, work), {reads_sums(work), work.bags.grouping != 0}),
      carried_(std::size_t{dimension_} * 5) {
  ESPALIER_ASSERT(results.size() ==
                  work.bags.offsets.size() * result_width(work.reduction, dimension_));
}

std::expected<void, WrongId> Reducer::begin() {
  if (const std::uint32_t asked = work_.bags.grouping; asked != 0) {
    const std::uint32_t now = window_.memo() == nullptr ? 0 : window_.memo()->number();
    if (asked != now) return std::unexpected(WrongId{asked, 0, now, true});
  }
  if (window_.memo() != nullptr) table_.help_with_sums();
  return window_.fill();
}

// Which of a run's pages are of sums comes in no order that could be foreseen, so the places of
// their sequences are computed and not branched for. Where there are no groups none are.
template <bool kSums, class Take>
void Reducer::for_sequences(const PageList& list, std::uint32_t rows, const Take& take) const {
  static_assert(RowWindow::kSumPage == std::uint32_t{1} << 31);
  const std::uint32_t* const pages = window_.pages();
  const std::uintptr_t of_rows = list.first_sequence();
  const std::uintptr_t of_sums = kSums ? window_.memo()->first_sequence() : 0;
  for (std::uint32_t i = 0; i < rows; ++i) {
    const std::uint32_t page = pages[i] & ~RowWindow::kSumPage;
    std::uintptr_t at = of_rows + std::uintptr_t{page} * sizeof(PageEntry);
    if constexpr (kSums) {
      const std::uintptr_t sum = of_sums + std::uintptr_t{page} * sizeof(std::uint64_t);
      at ^= (at ^ sum) & (std::uintptr_t{0} - (pages[i] >> 31));
    }
    take(i, reinterpret_cast<const std::byte*>(at), pages[i] >> 31);
  }
}

Reducer::Look Reducer::read_sequences(const PageList& list, std::uint32_t rows,
                                      Sequences& sequences) const {
  std::uint64_t odd = 0;
  std::uint64_t odd_sum = 0;
  const auto read = [&](std::uint32_t i, const std::byte* at, std::uint32_t is_sum) {
    sequences[i] = base::load_shared<std::uint64_t>(at, std::memory_order_acquire);
    odd |= sequences[i];
    odd_sum |= sequences[i] & is_sum;
  };
  if (window_.memo() == nullptr) {
    for_sequences<false>(list, rows, read);
  } else {
    for_sequences<true>(list, rows, read);
  }
  if (odd_sum % 2 != 0 && !planted(Bug::old_sums_believed)) return Look::sum_replaced;
  return odd % 2 == 0 || odd_sum % 2 != 0 ? Look::even : Look::replaced;
}

bool Reducer::are_as_before(const PageList& list, std::uint32_t rows,
                            const Sequences& sequences) const {
  if (planted(Bug::torn_row_believed)) return true;
  std::uint64_t differ = 0;
  const auto compare = [&](std::uint32_t i, const std::byte* at, std::uint32_t is_sum) {
    if (planted(Bug::old_sums_believed) && is_sum != 0) return;
    differ |= sequences[i] ^ base::load_shared<std::uint64_t>(at);
  };
  if (window_.memo() == nullptr) {
    for_sequences<false>(list, rows, compare);
  } else {
    for_sequences<true>(list, rows, compare);
  }
  return differ == 0 && table_.is_newest(list);
}

// How many rows of the window this run has, and which bags.
std::uint32_t Reducer::choose_rows() {
  bags_end_ = std::min(bag_ + kStepBags, work_.bags.offsets.size());
  std::uint32_t rows = std::min(kRunRows, window_.size());
  if (bags_end_ < work_.bags.offsets.size()) {
    rows = std::min(rows, window_.end_of_bag(bags_end_ - 1) - window_.first());
  }
  return rows;
}

std::expected<bool, WrongId> Reducer::step() {
  for (std::uint32_t i = 1; i < kStepRows / kRunRows; ++i) {
    const auto more = run();
    if (!more || !*more) return more;
  }
  return run();
}

std::expected<bool, WrongId> Reducer::run() {
  const std::uint32_t rows = fold_whole();
  count(rows);
  window_.pass(rows, bag_next_);
  bag_ = bag_next_;
  carries_ = carries_next_;
  half_ = 1 - half_;
  if (bag_ == work_.bags.offsets.size()) {
    counts_.bags = bag_;
    counts_.ids = work_.bags.ids.size();
    return false;
  }
  if (const auto filled = window_.fill(); !filled) return std::unexpected(filled.error());
  return true;
}

void Reducer::count(std::uint32_t rows) {
  counts_.rows += rows;
  if (window_.memo() == nullptr) return;
  counts_.sums += static_cast<std::uint64_t>(
      std::count_if(window_.pages(), window_.pages() + rows,
                    [](std::uint32_t page) { return (page & RowWindow::kSumPage) != 0; }));
}

// Returns how many rows were folded.
std::uint32_t Reducer::fold_whole() {
  Sequences sequences;
  for (int tries = 0; tries < kTriesMax;) {
    const PageList list = table_.page_list();
    const std::uint32_t rows = choose_rows();
    const Look look = read_sequences(list, rows, sequences);
    if (look == Look::sum_replaced) {
      // Of which there are fewer each time: this comes to an end.
      window_.put_back(std::span(sequences).first(rows));
      continue;
    }
    if (look == Look::even) {
      fold_rows(rows);
      acquire_rows();
      if (are_as_before(list, rows, sequences)) return rows;
    } else {
      base::spin_pause();
    }
    ++tries;
    ++counts_.rereads;
  }
  const auto kept_out = table_.hold_replacements();
  // Sums that must not be read under the lock either are those of groups that the table had.
  std::uint32_t rows = choose_rows();
  while (read_sequences(table_.page_list(), rows, sequences) == Look::sum_replaced) {
    window_.put_back(std::span(sequences).first(rows));
    rows = choose_rows();
  }
  fold_rows(rows);
  return rows;
}

// Of bags that end in this run the results, of the last one perhaps a part.
void Reducer::fold_rows(std::uint32_t rows) {
  const std::uint32_t first = window_.first();
  const std::uint32_t end = first + rows;
  float* const before = carried_.data() + std::size_t{half_} * dimension_;
  float* const after = carried_.data() + std::size_t{1 - half_} * dimension_;
  float* const whole = carried_.data() + std::size_t{2} * dimension_;
  bool carries = carries_;
  std::size_t bag = bag_;
  std::uint32_t at = first;
  for (; bag < bags_end_; ++bag) {
    const std::uint32_t bag_end = window_.end_of_bag(bag);
    const std::uint32_t count = std::min(bag_end, end) - at;
    const bool ends = bag_end <= end;
    const float* folded = carries ? before : nullptr;
    if (count != 0) {
      const float* const weights =
          work_.bags.weights.empty() ? nullptr : work_.bags.weights.data() + at;
      float* const to = ends ? whole : after;
      fold_bag({at - first, count, weights}, folded, to);
      folded = to;
      at += count;
    }
    if (!ends) {
      // All its rows so far are in `after`: a bag that began before has some in each of its steps.
      ESPALIER_DEBUG_ASSERT(!carries || count != 0);
      carries_next_ = count != 0;
      bag_next_ = bag;
      return;
    }
    finish_bag(work_, dimension_, bag, folded, results_);
    carries = false;
  }
  carries_next_ = false;
  bag_next_ = bag;
}

// Sums are of another type than rows, unless these are fp32: then one kernel takes both.
void Reducer::fold_bag(Rows of, const float* before, float* to) {
  const bool alike = table_.options().type == EmbeddingType::fp32;
  if (window_.memo() == nullptr || alike) return fold_run(of, false, before, to);
  float* const turns[] = {carried_.data() + std::size_t{3} * dimension_,
                          carried_.data() + std::size_t{4} * dimension_};
  const std::uint32_t* const pages = window_.pages();
  const std::uint32_t end = of.place + of.count;
  for (std::uint32_t turn = 0; of.place < end; turn = 1 - turn) {
    const bool sums = (pages[of.place] & RowWindow::kSumPage) != 0;
    std::uint32_t next = of.place + 1;
    while (next < end && ((pages[next] & RowWindow::kSumPage) != 0) == sums) ++next;
    of.count = next - of.place;
    float* const folded = next == end ? to : turns[turn];
    fold_run(of, sums, before, folded);
    before = folded;
    if (of.weights != nullptr) of.weights += of.count;
    of.place = next;
  }
}

void Reducer::fold_run(Rows of, bool sums, const float* before, float* to) {
  const std::byte* const* const rows = window_.rows();
  const std::uint32_t last = window_.size() - of.count;
  const auto ahead = [&](std::uint32_t rows_ahead) {
    return rows + std::min(of.place + rows_ahead, last);
  };
  const GatherKernel kernel = sums ? sum_kernel_ : kernel_;
  const std::uint32_t row_bytes = sums ? window_.memo()->sum_bytes() : table_.row_bytes();
  kernel({rows + of.place, of.weights, before, to, ahead(distances_.later), ahead(distances_.soon),
          of.count, dimension_, row_bytes});
}

std::expected<void, WrongId> reduce(const EmbeddingTable& table, const ReductionWork& work,
                                    std::span<float> results) {
  if (SmallReduction::fits(table, work)) {
    SmallReduction small;
    if (const auto begun = small.begin(table, work.bags.ids); !begun) return begun;
    table.count(small.fold(table, work, results));
    return {};
  }
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
