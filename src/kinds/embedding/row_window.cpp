// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/row_window.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "kinds/embedding/gather.hpp"
#include "kinds/embedding/memo_planner.hpp"

namespace espalier::embedding {

struct RowWindow::Planned {
  static constexpr std::uint32_t kRoom =
      kStepRows + kAheadRows + MemoPlanner::kPieceIds + kStepRows * RowGroups::kRowsMax;
  static constexpr std::uint32_t kBags = 2 * kStepBags;

  Planned(const Memo& memo, std::uint64_t table_rows, MemoUse use)
      : planner(memo, table_rows, use) {}

  MemoPlanner planner;
  std::array<const std::byte*, kRoom> rows;
  std::array<std::uint32_t, kRoom> pages;
  std::array<PlannedRow, kRoom> of;
  std::array<std::uint32_t, kBags> ends;  // of bags from the current one on, by number mod kBags
  std::size_t bag = 0;                    // the first that is not planned to its end
  std::uint32_t id = 0;                   // the first id that is not planned
};

RowWindow::~RowWindow() = default;

RowWindow::RowWindow(const EmbeddingTable& table, const EmbeddingBags& bags,
                     std::shared_ptr<const Memo> memo, MemoUse use)
    : table_(table), bags_(bags), memo_(std::move(memo)), table_rows_(table.rows()) {
  rows_ = plain_rows_.data();
  pages_ = plain_pages_.data();
  if (memo_ == nullptr) return;
  planned_ = std::make_unique<Planned>(*memo_, table_rows_, use);
  rows_ = planned_->rows.data();
  pages_ = planned_->pages.data();
}

std::uint32_t RowWindow::end_of_ids(std::size_t bag) const {
  return bag + 1 < bags_.offsets.size() ? bags_.offsets[bag + 1]
                                        : static_cast<std::uint32_t>(bags_.ids.size());
}

std::uint32_t RowWindow::end_of_bag(std::size_t bag) const {
  if (planned_ == nullptr) return end_of_ids(bag);
  return bag < planned_->bag ? planned_->ends[bag % Planned::kBags] : kNotPlanned;
}

std::expected<void, WrongId> RowWindow::fill() {
  if (head_ >= tail_ - head_) compact();
  asked_bytes_ = 0;
  return planned_ == nullptr ? fill_plain() : fill_planned();
}

void RowWindow::compact() {
  const std::uint32_t left = size();
  std::memmove(rows_, rows_ + head_, left * sizeof *rows_);
  std::memmove(pages_, pages_ + head_, left * sizeof *pages_);
  if (planned_ != nullptr) {
    std::copy_n(planned_->of.begin() + head_, left, planned_->of.begin());
  }
  head_ = 0;
  tail_ = left;
}

void RowWindow::resolve(const PageList& list, std::uint32_t row, std::uint32_t at) {
  const PageDivider& divider = table_.divider();
  const std::uint32_t page = divider.page_of(row);
  rows_[at] = list.rows_of(page) + std::size_t{row - page * divider.rows()} * table_.row_bytes();
  pages_[at] = page;
}

// Lines of the first rows are asked for here, those of later ones while the first are folded.
void RowWindow::ask_for(const std::byte* row, std::uint32_t row_bytes, std::uint32_t at) {
  if (at - head_ >= rows_wanted_ || asked_bytes_ >= kAskedBytesMax) return;
  prefetch_later(row, row_bytes);
  asked_bytes_ += row_bytes;
}

std::expected<void, WrongId> RowWindow::fill_plain() {
  const PageList list = table_.page_list();
  const auto ids = static_cast<std::uint32_t>(bags_.ids.size());
  const std::uint32_t row_bytes = table_.row_bytes();
  const std::uint32_t end = std::min(ids - first_, rows_wanted_);
  if (head_ + end > kPlainRoom) compact();
  for (; size() < end; ++tail_) {
    const std::uint32_t at = first_ + size();
    const std::uint32_t id = bags_.ids[at];
    if (id >= table_rows_) [[unlikely]] {
      return std::unexpected(WrongId{id, at, table_rows_});
    }
    resolve(list, id, tail_);
    if (first_ == 0) ask_for(rows_[tail_], row_bytes, tail_);
  }
  return {};
}

void RowWindow::resolve_sum(const PlannedRow& row, std::uint32_t at) {
  planned_->of[at] = row;
  const Memo::Sum sum = memo_->sum_at(row.sum);
  rows_[at] = sum.at;
  pages_[at] = sum.page | kSumPage;
}

void RowWindow::resolve_row(const PageList& list, const PlannedRow& row, std::uint32_t at) {
  planned_->of[at] = row;
  resolve(list, row.row, at);
}

// Those of a bag come at once, and memory takes no more than some lines at a time: so lines are
// asked for here at the beginning alone, and later ones while rows before them are folded.
void RowWindow::take_planned(const PageList& list) {
  const std::span<const PlannedRow> rows = planned_->planner.planned();
  const std::uint32_t sums = planned_->planner.sums();
  const std::uint32_t begin = tail_;
  for (const PlannedRow& row : rows.first(sums)) resolve_sum(row, tail_++);
  for (const PlannedRow& row : rows.subspan(sums)) resolve_row(list, row, tail_++);
  if (first_ != 0) return;
  for (std::uint32_t at = begin; at < tail_; ++at) {
    ask_for(rows_[at], at - begin < sums ? memo_->sum_bytes() : table_.row_bytes(), at);
  }
}

std::expected<void, WrongId> RowWindow::fill_planned() {
  const PageList list = table_.page_list();
  Planned& plan = *planned_;
  while (size() < rows_wanted_ && plan.bag < bags_.offsets.size() &&
         plan.bag - bag_ < Planned::kBags) {
    const std::uint32_t end = end_of_ids(plan.bag);
    const std::uint32_t some = std::min(end - plan.id, MemoPlanner::kPieceIds);
    const auto piece = bags_.ids.subspan(plan.id, some);
    const auto behind = bags_.ids.subspan(plan.id + some);
    plan.planner.expect(behind.first(std::min<std::size_t>(behind.size(), kExpectedIds)));
    const auto wrong = plan.planner.plan(piece);
    if (wrong) {
      const std::uint32_t at = plan.id + *wrong;
      return std::unexpected(WrongId{bags_.ids[at], at, table_rows_});
    }
    if (tail_ + plan.planner.planned().size() > Planned::kRoom) compact();
    take_planned(list);
    plan.id += some;
    if (plan.id == end) plan.ends[plan.bag++ % Planned::kBags] = first_ + size();
  }
  return {};
}

void RowWindow::pass(std::uint32_t rows, std::size_t next_bag) {
  ESPALIER_DEBUG_ASSERT(rows <= size());
  head_ += rows;
  first_ += rows;
  bag_ = next_bag;
}

// From the last to the first, so that each row moves once.
void RowWindow::put_back(std::span<const std::uint64_t> sequences) {
  if (planned_ == nullptr) return;
  compact();
  asked_bytes_ = 0;
  Planned& plan = *planned_;
  const PageList list = table_.page_list();
  for (auto i = static_cast<std::uint32_t>(sequences.size()); i-- > 0;) {
    if ((pages_[i] & kSumPage) == 0 || sequences[i] % 2 == 0) continue;
    const PlannedRow sum = plan.of[i];
    const auto more = static_cast<std::uint32_t>(std::popcount(sum.mask)) - 1;
    ESPALIER_ASSERT(tail_ + more <= Planned::kRoom);
    const std::uint32_t behind = tail_ - i - 1;
    std::memmove(rows_ + i + 1 + more, rows_ + i + 1, behind * sizeof *rows_);
    std::memmove(pages_ + i + 1 + more, pages_ + i + 1, behind * sizeof *pages_);
    std::copy_backward(plan.of.begin() + i + 1, plan.of.begin() + tail_,
                       plan.of.begin() + tail_ + more);
    tail_ += more;
    const NumberedGroup group = memo_->numbering().group(sum.row);
    std::uint32_t at = i;
    for (std::uint32_t mask = sum.mask; mask != 0; mask &= mask - 1, ++at) {
      const auto member = static_cast<std::uint32_t>(std::countr_zero(mask));
      resolve_row(list, {memo_->row_of(group, member), 0, 0}, at);
      ask_for(rows_[at], table_.row_bytes(), at);
    }
    for (std::size_t bag = bag_; bag < plan.bag; ++bag) {
      std::uint32_t& end = plan.ends[bag % Planned::kBags];
      if (end > first_ + i) end += more;
    }
  }
}

}  // namespace espalier::embedding
