// SPDX-License-Identifier: Apache-2.0
// The groups of an embedding table: made while it is read and written (grouping.hpp), and left for
// others.
#include <algorithm>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/memo.hpp"
#include "memory/region.hpp"
#include "store/dropped_objects.hpp"

namespace espalier::embedding {
namespace {

/// So many bytes of sums are computed while replacements wait, or one group: some 100 us.
constexpr std::uint64_t kBytesPerTurn = 128 << 10;
/// Replacements without a pause hold a grouping up no longer.
constexpr int kYieldsMax = 100;

}  // namespace

std::shared_ptr<const Memo> EmbeddingTable::memo() const {
  if (!has_groups_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(memo_mutex_);
  return memo_;
}

RowsAtRest EmbeddingTable::rows_at_rest() const {
  return {page_list(), divider_, options_.type, row_bytes_};
}

// --- making groups -------------------------------------------------------------------------------

bool EmbeddingTable::begin_grouping() {
  return !grouping_.exchange(true, std::memory_order_acquire);
}

void EmbeddingTable::end_grouping() {
  std::shared_ptr<Memo> undone;  // goes after the lock
  {
    const auto lock = hold_replacements();
    undone.swap(pending_);
  }
  grouping_groups_.store(0, std::memory_order_relaxed);
  grouping_computed_.store(0, std::memory_order_relaxed);
  grouping_bytes_.store(0, std::memory_order_relaxed);
  grouping_.store(false, std::memory_order_release);
}

// What it held goes back in steps, where others free in steps.
std::shared_ptr<Memo> EmbeddingTable::new_memo(std::uint64_t rows, const MemoNumbering& numbering) {
  std::uint32_t number = ++groupings_;
  if (number == 0) number = ++groupings_;  // that is no grouping
  grouping_groups_.store(numbering.groups(), std::memory_order_relaxed);
  auto memo = std::make_unique<Memo>(pool_, id_, options_.dimension, rows, numbering, number);
  const auto let_go = [waiting = waiting_](Memo* last) {
    std::unique_ptr<Memo> held(last);
    if (waiting != nullptr && held->memory_bytes() != 0) waiting->add(std::move(held));
  };
  return {memo.release(), let_go};
}

// What waits to be given back is there soon: taking a page has it freed.
std::uint64_t EmbeddingTable::free_bytes() const {
  const memory::Region& region = pool_.region();
  const std::uint64_t taken = region.taken_bytes();
  const std::uint64_t left = region.limit_bytes() - std::min(taken, region.limit_bytes());
  return left + pool_.free_bytes() + (waiting_ == nullptr ? 0 : waiting_->bytes());
}

void EmbeddingTable::count_grouping(std::uint64_t bytes) {
  grouping_bytes_.store(bytes, std::memory_order_relaxed);
}

Result<void> EmbeddingTable::begin_sums(std::shared_ptr<Memo> memo) {
  const auto lock = hold_replacements();
  if (dropped()) return fail(Code::not_found, id_);
  ESPALIER_ASSERT(pending_ == nullptr);
  pending_ = std::move(memo);
  return {};
}

// A lock that is taken again at once goes to this thread again.
void EmbeddingTable::let_replacements_go_on() const {
  for (int i = 0; i < kYieldsMax && replacements_waiting_.load(std::memory_order_relaxed) != 0;
       ++i) {
    std::this_thread::yield();
  }
}

Result<bool> EmbeddingTable::compute_sums() {
  let_replacements_go_on();
  std::shared_ptr<Memo> before;  // goes after the lock
  const std::lock_guard lock(replacements_mutex_);
  if (dropped()) return fail(Code::not_found, id_);
  const bool more = pending_->compute_some(rows_at_rest(), kBytesPerTurn / pending_->sum_bytes());
  grouping_computed_.store(pending_->groups_computed(), std::memory_order_relaxed);
  if (!more) before = exchange_memo(std::exchange(pending_, nullptr));
  return more;
}

Result<void> EmbeddingTable::leave_groups() {
  std::shared_ptr<Memo> before;  // goes after the lock
  const auto lock = hold_replacements();
  if (dropped()) return fail(Code::not_found, id_);
  before = exchange_memo(nullptr);
  return {};
}

// Who reads sums of groups that were before finds odd sequences from now on.
std::shared_ptr<Memo> EmbeddingTable::exchange_memo(std::shared_ptr<Memo> memo) {
  if (memo_ != nullptr) memo_->close();
  const std::lock_guard lock(memo_mutex_);
  has_groups_.store(memo != nullptr, std::memory_order_release);
  memo_.swap(memo);
  return memo;
}

// --- replacing rows that have one ----------------------------------------------------------------

template <class Do>
void EmbeddingTable::for_groups_of(std::uint32_t row, const Do& act) const {
  for (Memo* const memo : {memo_.get(), pending_.get()}) {
    const std::uint32_t place = memo == nullptr ? kNoPlace : memo->place_of(row);
    if (place != kNoPlace) act(*memo, group_of_place(place));
  }
}

void EmbeddingTable::unmemoise(std::uint32_t row) const {
  for_groups_of(row, [](Memo& memo, std::uint32_t group) { memo.unmemoise(group); });
}

void EmbeddingTable::memoise(std::uint32_t row) const {
  const RowsAtRest rows = rows_at_rest();
  for_groups_of(row, [&](Memo& memo, std::uint32_t group) { memo.memoise(rows, group); });
}

std::vector<std::string> EmbeddingTable::faults_of_groups() const {
  std::vector<std::string> wrong;
  for (const Memo* const memo : {memo_.get(), pending_.get()}) {
    if (memo == nullptr) continue;
    for (std::string& fault : memo->faults(rows_at_rest())) wrong.push_back(std::move(fault));
  }
  return wrong;
}

}  // namespace espalier::embedding
