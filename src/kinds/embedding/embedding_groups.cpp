// SPDX-License-Identifier: Apache-2.0
// The groups of an embedding table: made while it is read and written (grouping.hpp), and replaced
// by others.
#include <algorithm>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "catalog/redo_sink.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/memo.hpp"
#include "memory/region.hpp"
#include "store/dropped_objects.hpp"

namespace espalier::embedding {
namespace {

/// Bytes of sums that are computed while replacements wait, or one group: some 100 us.
constexpr std::uint64_t kBytesPerTurn = 128 << 10;
/// Limit on how long replacements without a pause delay a grouping.
constexpr int kYieldsMax = 100;
/// Bytes of sums that a reader computes on behalf of others: some microseconds.
constexpr std::uint64_t kBytesPerHelp = 16 << 10;

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
  std::shared_ptr<Memo> undone;  // destroyed after the lock
  {
    const auto lock = hold_replacements();
    undone.swap(pending_);
  }
  grouping_groups_.store(0, std::memory_order_relaxed);
  grouping_computed_.store(0, std::memory_order_relaxed);
  grouping_bytes_.store(0, std::memory_order_relaxed);
  shown_groupings_.store(recorded_groupings_.load());
  grouping_.store(false, std::memory_order_release);
}

// Its memory is freed in steps, if other threads free in steps.
std::shared_ptr<Memo> EmbeddingTable::new_memo(std::uint64_t rows, const MemoNumbering& numbering) {
  std::uint32_t number = ++groupings_;
  if (number == 0) number = ++groupings_;  // which means no grouping
  grouping_groups_.store(numbering.groups(), std::memory_order_relaxed);
  auto memo = std::make_unique<Memo>(pool_, id_, options_.dimension, rows, numbering, number);
  const auto let_go = [waiting = waiting_](Memo* last) {
    std::unique_ptr<Memo> held(last);
    if (waiting != nullptr && held->memory_bytes() != 0) waiting->add(std::move(held));
  };
  return {memo.release(), let_go};
}

// Counts memory that waits to be freed: taking a page has it freed.
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
  memo->pass_over_stores(stores_without_sums_.load());
  pending_ = std::move(memo);
  return {};
}

// A lock that is taken again immediately goes to the same thread.
void EmbeddingTable::let_replacements_go_on() const {
  for (int i = 0; i < kYieldsMax && replacements_waiting_.load(std::memory_order_relaxed) != 0;
       ++i) {
    std::this_thread::yield();
  }
}

Result<bool> EmbeddingTable::compute_sums() {
  let_replacements_go_on();
  const std::lock_guard lock(replacements_mutex_);
  if (dropped()) return fail(Code::not_found, id_);
  const bool more = pending_->compute_some(rows_at_rest(), kBytesPerTurn / pending_->sum_bytes());
  grouping_computed_.store(pending_->groups_computed(), std::memory_order_relaxed);
  const auto stores = hold_stores();
  pending_->open_pages();
  return more;
}

// Counted before its first record, so that a copy which begins after that one finds it counted.
void EmbeddingTable::begin_group_records() { recorded_groupings_.fetch_add(1); }

Result<void> EmbeddingTable::show_groups(catalog::RedoRoom& room) {
  std::shared_ptr<Memo> before;  // destroyed after the lock
  const auto lock = hold_replacements();
  if (dropped()) return fail(Code::not_found, id_);
  room.hand_over();
  before = exchange_memo(std::exchange(pending_, nullptr));
  grouping_bytes_.store(0, std::memory_order_relaxed);
  return {};
}

// Readers of sums of the former groups find odd sequences from now on.
std::shared_ptr<Memo> EmbeddingTable::exchange_memo(std::shared_ptr<Memo> memo) {
  if (memo_ != nullptr) memo_->close();
  const std::lock_guard lock(memo_mutex_);
  has_groups_.store(memo != nullptr, std::memory_order_release);
  memo_.swap(memo);
  return memo;
}

// --- replacing rows of groups --------------------------------------------------------------------

template <class Do>
void EmbeddingTable::for_groups_of(std::uint32_t row, const Do& act) const {
  for (Memo* const memo : {memo_.get(), pending_.get()}) {
    const std::uint32_t place = memo == nullptr ? kNoPlace : memo->place_of(row);
    if (place != kNoPlace && !memo->passes_over()) act(*memo, group_of_place(place));
  }
}

// For a new store, which no memo passes over.
bool EmbeddingTable::unmemoise(std::uint32_t row) const noexcept {
  bool has_sums = false;
  for (Memo* const memo : {memo_.get(), pending_.get()}) {
    const std::uint32_t place = memo == nullptr ? kNoPlace : memo->place_of(row);
    if (place == kNoPlace) continue;
    memo->unmemoise(group_of_place(place));
    has_sums = true;
  }
  return has_sums;
}

bool EmbeddingTable::compute_sums_of(std::uint32_t row, std::uint64_t& sums) const {
  const RowsAtRest rows = rows_at_rest();
  bool all = true;
  for_groups_of(row, [&](Memo& memo, std::uint32_t group) {
    all = memo.compute_again(rows, group, sums) && all;
  });
  return all;
}

void EmbeddingTable::memoise(std::uint32_t row) const {
  for_groups_of(row, [](Memo& memo, std::uint32_t group) { memo.memoise(group); });
}

// In the order of the stores. Other threads may add stores meanwhile, but remove none.
void EmbeddingTable::compute_sums_of_stores(std::uint64_t sums) const {
  while (sums != 0) {
    std::uint32_t row = 0;
    {
      const auto stores = hold_stores();
      if (stores_without_sums_.load() == 0) return;
      row = static_cast<std::uint32_t>(waiting_stores_.front().row);
    }
    if (!compute_sums_of(row, sums)) return;
    const auto stores = hold_stores();
    if (stores_without_sums_.load() == 0) return;  // it was dropped
    memoise(row);
    for (Memo* const memo : {memo_.get(), pending_.get()}) {
      if (memo != nullptr && memo->passes_over()) memo->pass_over_store();
    }
    waiting_stores_.pop_front();
    stores_without_sums_.fetch_sub(1);
  }
}

void EmbeddingTable::help_with_sums() const {
  if (stores_without_sums_.load(std::memory_order_relaxed) == 0) return;
  const std::unique_lock lock(replacements_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;  // the holder computes some, or releases it soon
  compute_sums_of_stores(kBytesPerHelp / row_bytes_of(EmbeddingType::fp32, options_.dimension));
}

// A row that is stored meanwhile, and has no sums yet, is no fault.
std::vector<std::string> EmbeddingTable::faults_of_groups() const {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  for (;;) {
    compute_sums_of_stores(kAll);
    const auto stores = hold_stores();
    if (stores_without_sums_.load() == 0) return faults_of_sums();
  }
}

std::vector<std::string> EmbeddingTable::faults_of_sums() const {
  std::vector<std::string> wrong;
  for (const Memo* const memo : {memo_.get(), pending_.get()}) {
    if (memo == nullptr) continue;
    for (std::string& fault : memo->faults(rows_at_rest())) wrong.push_back(std::move(fault));
  }
  return wrong;
}

}  // namespace espalier::embedding
