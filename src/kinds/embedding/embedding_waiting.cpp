// SPDX-License-Identifier: Apache-2.0
// Changes that an embedding table hides from its readers until their records are durable: appended
// rows, and replaced rows. Rows have no versions, so waiting changes are not in the table at all,
// except for rows behind those that are counted.
//
//   append    record, rows behind the others  -> waiting_rows_   --+ the mark has risen:
//   replace   record                          -> waiting_stores_ --+ counted, or stored
//
//   waiting_stores_   stored, their groups' sums not computed | not durable yet
//                     stores_without_sums_ of them            |
//
// Each writer adds its change to the list, then the table to the mark's list, and then reads the
// mark; the thread that raises the mark reads the lists after that. One of both sees the other
// (base/durable_mark.hpp). Rows are stored under the lock of stores alone, which no thread holds
// for long: readers for a step, an audit for a page. The thread that raises the mark has no time
// for the sums of a row's group: it only makes them unreadable, and the next thread that replaces
// rows, or reads by groups, computes them (embedding_groups.cpp).
//
// Thread: any.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/try_reserve.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/page_buffer.hpp"
#include "kinds/embedding/planted_embedding_bugs.hpp"
#include "kinds/embedding/query_lists.hpp"

namespace espalier::embedding {

// Called before other threads find the table.
void EmbeddingTable::record_to(catalog::RedoSink* sink) {
  if (mark_ != nullptr) mark_->leave(*this);
  const bool waits = sink != nullptr && sink->mark().is_of_records();
  mark_ = waits && !planted(Bug::rows_before_durable) ? &sink->mark() : nullptr;
  told_groups_.reset();  // recovery is over, and their other records are lost
  Object::record_to(sink);
}

bool EmbeddingTable::reserve_waiting_rows() noexcept {
  const auto stores = hold_stores();
  return mark_ == nullptr || base::try_reserve(waiting_rows_, 1);
}

void EmbeddingTable::show_rows(std::uint64_t rows, std::uint64_t sequence) noexcept {
  if (mark_ == nullptr) {
    // The one store that makes the append visible.
    base::store_shared(header_ + offsetof(EmbeddingHeader, rows), rows, std::memory_order_release);
    return;
  }
  {
    const auto stores = hold_stores();
    if (!dropped()) waiting_rows_.push_back({sequence, rows});  // with reserved capacity
  }
  mark_->wait_for_rise(*this);  // before the mark is read
  release_waiting();
}

// Requires: the lock of replacements is held, so what this adds stays the last.
Result<void> EmbeddingTable::replace_when_durable(catalog::RedoRoom& room, std::uint64_t row,
                                                  std::span<const std::byte> bytes) {
  WaitingReplacement waiting{base::DurableMark::kAll, row, {bytes.begin(), bytes.end()}};
  {
    const auto stores = hold_stores();
    if (dropped()) return fail(Code::not_found, id_);
    waiting_stores_.push_back(std::move(waiting));  // may fail, and nothing was done
  }
  // For each row that is stored the sums of one, and some of those whose sums are overdue.
  compute_sums_of_stores(2 * group_sums(RowGroups::kRowsMax));
  recorded_replacements_.fetch_add(1);  // first: see recorded()
  const std::uint64_t sequence = room.hand_over();
  {
    const auto stores = hold_stores();
    // Unless it was dropped meanwhile.
    if (!waiting_stores_.empty()) waiting_stores_.back().sequence = sequence;
  }
  mark_->wait_for_rise(*this);
  release_waiting();
  return {};
}

void EmbeddingTable::release_waiting() noexcept {
  const auto stores = hold_stores();
  const std::uint64_t durable = mark_->durable();
  for (std::uint32_t stored = stores_without_sums_.load();
       stored < waiting_stores_.size() && waiting_stores_[stored].sequence <= durable;) {
    WaitingReplacement& next = waiting_stores_[stored];
    const auto row = static_cast<std::uint32_t>(next.row);
    const bool has_sums = unmemoise(row);
    store_row(row, next.bytes);
    rows_replaced_.fetch_add(1);
    if (stored == 0 && !has_sums) {
      waiting_stores_.pop_front();
      continue;
    }
    std::vector<std::byte>().swap(next.bytes);
    stores_without_sums_.store(++stored);
  }
  const auto end = std::ranges::find_if(
      waiting_rows_, [&](const WaitingRows& each) { return each.sequence > durable; });
  if (end == waiting_rows_.begin()) return;
  base::store_shared(header_ + offsetof(EmbeddingHeader, rows), std::prev(end)->rows,
                     std::memory_order_release);
  waiting_rows_.erase(waiting_rows_.begin(), end);
}

bool EmbeddingTable::release_durable() noexcept {
  release_waiting();
  const auto stores = hold_stores();
  return !waiting_rows_.empty() || waiting_stores_.size() > stores_without_sums_.load();
}

// For a dropped table: no reader sees it, and its pages are freed.
void EmbeddingTable::forget_waiting() noexcept {
  const auto stores = hold_stores();
  waiting_rows_.clear();
  waiting_stores_.clear();
  stores_without_sums_.store(0);
}

void EmbeddingTable::copy_rows(std::uint64_t first, std::span<std::byte> to) const {
  for (std::uint64_t row = first; !to.empty(); ++row, to = to.subspan(row_bytes_)) {
    load_words(to.data(), place_of(row), row_bytes_);
  }
}

}  // namespace espalier::embedding
