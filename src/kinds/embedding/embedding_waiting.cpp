// SPDX-License-Identifier: Apache-2.0
// Changes that an embedding table hides from its readers until their records are durable: appended
// rows, and replaced rows. Rows have no versions, so waiting changes are not in the table at all,
// except for rows behind those that are counted.
//
//   append    rows behind the others, record  -> waiting_rows_   --+ the mark has risen, in the
//   replace   record                          -> waiting_stores_ --+ order of the records: counted,
//                                                                   or stored
//
//   waiting_stores_   stored, their groups' sums not computed | not durable yet
//                     stores_without_sums_ of them            |
//
// A record is handed over under the lock of stores, under which what it tells is put in its list:
// so a thread that finds it durable finds all that was recorded before it in the lists, too.
//
// Each writer puts what it has done in the list, then the table in the mark's list, and then looks
// at the mark; who raises the mark looks at what waits after that. One of both sees the other
// (base/durable_mark.hpp). Rows are stored with no other lock than that of stores, which no thread
// holds for long: readers for a step, an audit for a page. Who raises the mark has no time for the
// sums of a row's group: it only sees to it that no thread reads them, and they are computed by who
// replaces rows next, or reads by groups (embedding_groups.cpp).
//
// Thread: any.
#include <cstddef>
#include <cstdint>
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

void EmbeddingTable::show_rows(std::uint64_t rows, catalog::RedoRoom& room) noexcept {
  if (mark_ == nullptr) {
    if (!planted(Bug::record_after_publish)) room.hand_over();
    // The one store that makes the append visible.
    base::store_shared(header_ + offsetof(EmbeddingHeader, rows), rows, std::memory_order_release);
    room.hand_over();
    return;
  }
  {
    const auto stores = hold_stores();
    const std::uint64_t sequence = room.hand_over();
    if (!dropped()) waiting_rows_.push_back({sequence, rows});  // there is room
  }
  mark_->wait_for_rise(*this);  // before the mark is read
  release_waiting();
}

// Requires: the lock of replacements is held.
Result<void> EmbeddingTable::replace_when_durable(catalog::RedoRoom& room, std::uint64_t row,
                                                  std::span<const std::byte> bytes) {
  WaitingReplacement waiting{0, row, {bytes.begin(), bytes.end()}};
  // Per stored row the sums of one, and of those whose turn no other thread has taken.
  compute_sums_of_stores(2 * group_sums(RowGroups::kRowsMax));
  {
    const auto stores = hold_stores();
    if (dropped()) return fail(Code::not_found, id_);
    waiting_stores_.push_back(std::move(waiting));  // may fail, and nothing was done
    recorded_replacements_.fetch_add(1);            // first: see recorded()
    waiting_stores_.back().sequence = room.hand_over();
  }
  mark_->wait_for_rise(*this);
  release_waiting();
  return {};
}

// What readers see at any moment is what the records up to some one tell.
void EmbeddingTable::release_waiting() noexcept {
  const auto stores = hold_stores();
  const std::uint64_t durable = mark_->durable();
  std::size_t counted = 0;  // of waiting_rows_
  const auto count_until = [&](std::uint64_t sequence) {
    const std::size_t before = counted;
    while (counted < waiting_rows_.size() && waiting_rows_[counted].sequence <= sequence) ++counted;
    if (counted == before) return;
    base::store_shared(header_ + offsetof(EmbeddingHeader, rows), waiting_rows_[counted - 1].rows,
                       std::memory_order_release);
  };
  for (;;) {
    const std::uint32_t stored = stores_without_sums_.load();
    if (stored == waiting_stores_.size() || waiting_stores_[stored].sequence > durable) break;
    if (!planted(Bug::rows_counted_last)) count_until(waiting_stores_[stored].sequence);
    store_waiting(stored);
  }
  count_until(durable);
  waiting_rows_.erase(waiting_rows_.begin(),
                      waiting_rows_.begin() + static_cast<std::ptrdiff_t>(counted));
}

// The first one that is not stored. Requires: the lock of stores.
void EmbeddingTable::store_waiting(std::uint32_t stored) noexcept {
  WaitingReplacement& next = waiting_stores_[stored];
  const bool has_sums = unmemoise(static_cast<std::uint32_t>(next.row));
  store_row(next.row, next.bytes);
  rows_replaced_.fetch_add(1);
  if (stored == 0 && !has_sums) {
    waiting_stores_.pop_front();
    return;
  }
  std::vector<std::byte>().swap(next.bytes);
  stores_without_sums_.store(stored + 1);
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
