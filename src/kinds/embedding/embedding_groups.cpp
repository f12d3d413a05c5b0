// SPDX-License-Identifier: Apache-2.0
// The groups of an embedding table: made while it is read and written, and left for others.
#include <thread>
#include <utility>

#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/memo.hpp"

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

// Who reads sums of groups that were before finds odd sequences from now on.
void EmbeddingTable::exchange_memo(std::shared_ptr<Memo> memo) {
  if (memo_ != nullptr) memo_->close();
  const std::lock_guard lock(memo_mutex_);
  has_groups_.store(memo != nullptr, std::memory_order_release);
  memo_.swap(memo);
}

// A lock that is taken again at once goes to this thread again.
void EmbeddingTable::let_replacements_go_on() const {
  for (int i = 0; i < kYieldsMax && replacements_waiting_.load(std::memory_order_relaxed) != 0;
       ++i) {
    std::this_thread::yield();
  }
}

Result<std::uint32_t> EmbeddingTable::begin_grouping(const RowGroups& groups) {
  std::shared_ptr<Memo> memo;
  if (!groups.sizes.empty()) {
    std::uint32_t number = groupings_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (number == 0)
      number = groupings_.fetch_add(1, std::memory_order_relaxed) + 1;  // no grouping
    auto made = Memo::create(pool_, id_, options_.dimension, rows(), groups, number);
    if (!made) return std::unexpected(made.error());
    memo = std::move(*made);
  }
  const std::uint32_t number = memo == nullptr ? 0 : memo->number();
  const auto lock = hold_replacements();
  if (dropped()) return fail(Code::not_found, id_);
  exchange_memo(std::move(memo));
  return number;
}

bool EmbeddingTable::compute_groups(std::uint32_t grouping) {
  let_replacements_go_on();
  const std::lock_guard lock(replacements_mutex_);
  if (dropped() || memo_ == nullptr || memo_->number() != grouping) return false;
  if (memo_->is_computed()) return false;
  return memo_->compute_some(rows_at_rest(), kBytesPerTurn / memo_->sum_bytes());
}

Result<std::uint32_t> EmbeddingTable::group(const RowGroups& groups) {
  auto grouping = begin_grouping(groups);
  while (grouping && *grouping != 0 && compute_groups(*grouping)) {
  }
  return grouping;
}

std::vector<std::string> EmbeddingTable::faults_of_groups() const {
  return memo_ == nullptr ? std::vector<std::string>() : memo_->faults(rows_at_rest());
}

}  // namespace espalier::embedding
