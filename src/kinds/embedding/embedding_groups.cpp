// SPDX-License-Identifier: Apache-2.0
// The groups of an embedding table: made while it is read and written, and left for others.
#include <thread>
#include <utility>

#include "kinds/embedding/embedding_table.hpp"

namespace espalier::embedding {
namespace {

/// So many sums are computed while replacements wait: some 100 us with rows of 256 bytes.
constexpr std::uint64_t kSumsPerTurn = 512;
/// Replacements without a pause hold a grouping up no longer.
constexpr int kYieldsMax = 100;

}  // namespace

std::shared_ptr<const Memo> EmbeddingTable::memo() const {
  if (!has_groups_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(memo_mutex_);
  return memo_;
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

Result<std::uint32_t> EmbeddingTable::group(const RowGroups& groups) {
  const std::lock_guard one(groupings_mutex_);
  std::shared_ptr<Memo> memo;
  if (!groups.sizes.empty()) {
    auto made = Memo::create(pool_, id_, options_.dimension, rows(), groups, groupings_ + 1);
    if (!made) return std::unexpected(made.error());
    memo = std::move(*made);
  }
  {
    const std::lock_guard lock(replacements_mutex_);
    if (dropped()) return fail(Code::not_found, id_);
    exchange_memo(memo);
  }
  if (memo == nullptr) return 0;
  ++groupings_;
  for (bool more = true; more && !dropped();) {
    {
      const std::lock_guard lock(replacements_mutex_);
      more = memo->compute_some(rows_at_rest(), kSumsPerTurn);
    }
    let_replacements_go_on();
  }
  return memo->number();
}

std::vector<std::string> EmbeddingTable::faults_of_groups() const {
  return memo_ == nullptr ? std::vector<std::string>() : memo_->faults(rows_at_rest());
}

}  // namespace espalier::embedding
