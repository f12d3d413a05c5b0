// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/memo.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.hpp"
#include "base/barrier.hpp"
#include "base/bytes.hpp"
#include "kinds/embedding/page_buffer.hpp"
#include "kinds/embedding/planted_embedding_bugs.hpp"
#include "kinds/embedding/row_codec.hpp"

namespace espalier::embedding {
namespace {

constexpr std::uint64_t pages_of_words(std::uint64_t words) {
  return base::divide_up(words, std::uint64_t{rows_per_page(sizeof(std::uint32_t))});
}

}  // namespace

Memo::Memo(memory::BufferPool& pool, std::uint32_t table_id, std::uint32_t dimension,
           std::uint64_t rows, const MemoNumbering& numbering, std::uint32_t number)
    : pool_(pool),
      table_id_(table_id),
      dimension_(dimension),
      rows_(rows),
      number_(number),
      sum_bytes_(row_bytes_of(EmbeddingType::fp32, dimension)),
      divider_(rows_per_page(sum_bytes_)),
      numbering_(numbering),
      base_rows_(std::size_t{dimension} * RowGroups::kRowsMax),
      sum_(dimension) {
  ESPALIER_ASSERT(number != 0);
}

Memo::~Memo() {
  for (const std::uint64_t offset : buffers_) pool_.release(offset, kPageClass);
}

std::array<Memo::PageSet, 3> Memo::page_sets() {
  constexpr std::uint32_t kWord = sizeof(std::uint32_t);
  return {
      {{places_, pages_of_words(rows_), kWord},
       {members_, pages_of_words(numbering_.members()), kWord},
       {sums_, base::divide_up(numbering_.sums(), std::uint64_t{divider_.rows()}), sum_bytes_}}};
}

std::uint64_t Memo::pages_wanted() const {
  return pages_of_words(rows_) + pages_of_words(numbering_.members()) +
         base::divide_up(numbering_.sums(), std::uint64_t{divider_.rows()});
}

Result<bool> Memo::take_pages(std::uint32_t some) {
  if (sequences_ == nullptr) {
    const std::uint64_t pages = page_sets().back().count;
    buffers_.reserve(pages_wanted());  // so that none is lost on its way into it
    stores_to_ = std::make_unique<std::uint32_t[]>(pages);
    sequences_ = std::make_unique<std::atomic<std::uint64_t>[]>(pages);
    for (std::uint64_t page = 0; page < pages; ++page) sequences_[page] = 1;
  }
  for (const PageSet& set : page_sets()) {
    set.pages.reserve(set.count);
    for (; set.pages.size() < set.count; --some) {
      if (some == 0) return true;
      if (const auto taken = take_page(set); !taken) return std::unexpected(taken.error());
    }
  }
  return false;
}

Result<void> Memo::take_page(const PageSet& set) {
  const auto offset = pool_.allocate_or_reclaim(kPageClass);
  if (!offset) return std::unexpected(offset.error());
  const std::uint64_t page = set.pages.size();
  buffers_.push_back(*offset);
  set.pages.push_back(*offset);
  std::byte* const buffer = pool_.at(*offset);
  begin_buffer(buffer, sizeof(PageHeader), table_id_);
  base::store_shared(buffer + offsetof(PageHeader, page), page);
  base::store_shared(buffer + offsetof(PageHeader, first_row), page * rows_per_page(set.row_bytes));
  base::store_shared(buffer + offsetof(PageHeader, row_bytes), set.row_bytes);
  set_live(buffer);
  return {};
}

void Memo::store_word(const Words& pages, std::uint32_t index, std::uint32_t word) {
  base::store_shared(const_cast<std::byte*>(word_at(pages, index)), word);
}

bool Memo::empty_places() {
  const std::uint64_t end = std::min(rows_, emptied_ + kWordsPerPage);
  for (; emptied_ < end; ++emptied_) {
    store_word(places_, static_cast<std::uint32_t>(emptied_), kNoPlace);
  }
  return emptied_ < rows_;
}

std::optional<std::uint32_t> Memo::number_group(std::uint32_t group,
                                                std::span<const std::uint32_t> rows) {
  const std::uint32_t members = numbering_.group(group).members;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= rows_ || place_of(rows[i]) != kNoPlace) return i;
    store_word(places_, rows[i], place_in(group, i));
    store_word(members_, members + i, rows[i]);
  }
  return std::nullopt;
}

Memo::Range Memo::pages_of(const NumberedGroup& group) const {
  return {divider_.page_of(group.sums), divider_.page_of(group.sums + group_sums(group.rows) - 1)};
}

void Memo::load_rows(const RowsAtRest& rows, const NumberedGroup& group) const {
  row_.resize(rows.row_bytes);
  for (std::uint32_t i = 0; i < group.rows; ++i) {
    const std::uint32_t row = row_of(group, i);
    const std::uint32_t page = rows.divider.page_of(row);
    const std::byte* const at =
        rows.list.rows_of(page) + std::size_t{row - page * rows.divider.rows()} * rows.row_bytes;
    load_words(row_.data(), at, rows.row_bytes);
    load_row(rows.type, row_,
             std::span(base_rows_).subspan(std::size_t{i} * dimension_, dimension_));
  }
}

// The sum without the last row is there already, or is a row.
void Memo::add_sum(const NumberedGroup& group, std::uint32_t mask) const {
  const auto last = static_cast<std::uint32_t>(std::bit_width(mask)) - 1;
  const std::uint32_t rest = mask ^ (std::uint32_t{1} << last);
  const float* before = base_rows_.data();
  if (std::has_single_bit(rest)) {
    before += static_cast<std::size_t>(std::countr_zero(rest)) * dimension_;
  } else {
    const std::byte* const at = sum_at(group.sums + rank_of_mask(rest)).at;
    for (std::uint32_t c = 0; c < dimension_; ++c) {
      sum_[c] = base::load_shared<float>(at + sizeof(float) * c);
    }
    before = sum_.data();
  }
  const float* const row = base_rows_.data() + std::size_t{last} * dimension_;
  for (std::uint32_t c = 0; c < dimension_; ++c) sum_[c] = before[c] + row[c];
}

// From this sum on; returns where it has ended.
std::uint32_t Memo::compute(const RowsAtRest& rows, const NumberedGroup& group, std::uint32_t mask,
                            std::uint64_t& sums) {
  load_rows(rows, group);
  const std::uint32_t end = std::uint32_t{1} << group.rows;
  for (; mask < end && sums != 0; ++mask) {
    if (std::has_single_bit(mask)) continue;
    add_sum(group, mask);
    store_words(const_cast<std::byte*>(sum_at(group.sums + rank_of_mask(mask)).at),
                reinterpret_cast<const std::byte*>(sum_.data()), sum_bytes_);
    --sums;
  }
  return mask;
}

bool Memo::compute_some(const RowsAtRest& rows, std::uint64_t sums) {
  if (closed_) return false;
  std::uint64_t done = 0;
  do {
    const NumberedGroup group = numbering_.group(computed_);
    std::uint64_t all = group_sums(group.rows);
    done += all;
    compute(rows, group, kFirstMask, all);
  } while (++computed_ < numbering_.groups() && done < sums);
  return !is_computed();
}

bool Memo::compute_again(const RowsAtRest& rows, std::uint32_t group, std::uint64_t& sums) {
  if (closed_ || group >= computed_ || planted(Bug::sums_not_recomputed)) return true;
  const NumberedGroup numbered = numbering_.group(group);
  const std::uint32_t end = std::uint32_t{1} << numbered.rows;
  if (again_mask_ < end) again_mask_ = compute(rows, numbered, again_mask_, sums);
  return again_mask_ >= end;
}

// A page may have rows that were stored since, without their sums.
void Memo::open_pages() {
  if (closed_) return;
  const auto pages = is_computed() ? static_cast<std::uint32_t>(sums_.size())
                                   : numbering_.group(computed_).sums / divider_.rows();
  for (; pages_open_ < pages; ++pages_open_) {
    if (stores_to_[pages_open_] == 0) {
      sequences_[pages_open_].store(2, std::memory_order_release);
    }
  }
}

void Memo::unmemoise(std::uint32_t group) noexcept {
  if (closed_ || planted(Bug::group_not_unmemoised)) return;
  const Range range = pages_of(numbering_.group(group));
  for (std::uint32_t page = range.first; page <= range.last; ++page) {
    const bool first = stores_to_[page] == 0;
    if (first || !planted(Bug::one_store_counted)) ++stores_to_[page];
    if (!first || page >= pages_open_) continue;
    const std::uint64_t before = sequences_[page].load(std::memory_order_relaxed);
    ESPALIER_DEBUG_ASSERT(before % 2 == 0);
    sequences_[page].store(before + 1, std::memory_order_relaxed);
  }
  base::release_fence();
}

void Memo::memoise(std::uint32_t group) noexcept {
  again_mask_ = kFirstMask;
  if (closed_ || planted(Bug::group_not_unmemoised)) return;
  const Range range = pages_of(numbering_.group(group));
  for (std::uint32_t page = range.first; page <= range.last; ++page) {
    if (stores_to_[page] == 0 && planted(Bug::one_store_counted)) continue;
    ESPALIER_DEBUG_ASSERT(stores_to_[page] != 0);
    if (--stores_to_[page] != 0 || page >= pages_open_) continue;
    const std::uint64_t before = sequences_[page].load(std::memory_order_relaxed);
    sequences_[page].store(before + 1, std::memory_order_release);
  }
}

void Memo::close() {
  closed_ = true;
  for (std::uint32_t page = 0; page < pages_open_; ++page) {
    const std::uint64_t before = sequences_[page].load(std::memory_order_relaxed);
    sequences_[page].store(before | 1, std::memory_order_relaxed);
  }
  base::release_fence();
}

std::vector<std::string> Memo::faults(const RowsAtRest& rows) const {
  std::vector<std::string> wrong;
  for (std::uint32_t page = 0; page < pages_open_; ++page) {
    if (stores_to_[page] != 0) wrong.push_back("page " + std::to_string(page) + " lacks sums");
    if (sequence_of(page) % 2 != 0) {
      wrong.push_back("page " + std::to_string(page) + " of sums has an odd sequence");
    }
  }
  for (std::uint32_t number = 0; number < computed_; ++number) add_faults(rows, number, wrong);
  return wrong;
}

void Memo::add_faults(const RowsAtRest& rows, std::uint32_t number,
                      std::vector<std::string>& wrong) const {
  const NumberedGroup group = numbering_.group(number);
  const std::string name = "group " + std::to_string(number);
  for (std::uint32_t i = 0; i < group.rows; ++i) {
    if (place_of(row_of(group, i)) == place_in(number, i)) continue;
    wrong.push_back(name + ": row " + std::to_string(i) + " has another place");
  }
  load_rows(rows, group);
  for (std::uint32_t mask = 3; mask < std::uint32_t{1} << group.rows; ++mask) {
    if (std::has_single_bit(mask)) continue;
    add_sum(group, mask);
    const std::byte* const at = sum_at(group.sums + rank_of_mask(mask)).at;
    for (std::uint32_t c = 0; c < dimension_; ++c) {
      const auto there = base::load_shared<float>(at + sizeof(float) * c);
      if (there == sum_[c] || (std::isnan(there) && std::isnan(sum_[c]))) continue;
      wrong.push_back(name + ": sum " + std::to_string(mask) + " is not that of its rows");
      break;
    }
  }
}

bool Memo::give_back(std::uint32_t& steps) {
  for (; !buffers_.empty(); --steps) {
    if (steps == 0) return false;
    pool_.release(buffers_.back(), kPageClass);
    buffers_.pop_back();
    freed_bytes_ += kPageBytes;
  }
  return true;
}

}  // namespace espalier::embedding
