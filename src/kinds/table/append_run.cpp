// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/append_run.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "kinds/table/planted_table_bugs.hpp"
#include "kinds/table/redo_record.hpp"
#include "kinds/table/table_growth.hpp"

namespace espalier::table {

void SpanSource::copy(std::uint64_t offset, std::span<std::byte> into) const {
  copy_words_once(into.data(), rows_.data() + offset, into.size());
}

AppendRun::AppendRun(Table& table, const AppendSource& source, std::uint64_t rows,
                     std::optional<ReservationClaim> claim)
    : table_(table), source_(source), rows_(rows), claim_(std::move(claim)) {}

// Slots of a reservation that were begun are dead.
AppendRun::~AppendRun() {
  if (!growth_) return;
  if (claim_) {
    table_.reserved_ = std::move(growth_);
    table_.end_reservation();
  } else {
    table_.give_back(*growth_);
  }
}

void AppendRun::wait_for_turn() {
  if (!turn_) turn_ = table_.append_turn_.take();
}

void AppendRun::fail(Error error) {
  result_.emplace(std::unexpected(AppendError{error, 0, {}}));
  redo_ = {};
  turn_ = {};
}

// In its turn, so that appends that wait for theirs hold no room.
Result<void> AppendRun::reserve_record() {
  if (rows_ == 0) return {};
  auto room = catalog::RedoRoom::reserve(
      table_.redo(), sizeof(AppendedRecord) + rows_ * table_.schema().row_bytes());
  if (!room) return std::unexpected(room.error());
  // Which are visible later, and must find a place then.
  if (!table_.reserve_waiting()) return table_.pool_.region().out_of_memory();
  redo_ = std::move(*room);
  return {};
}

// The rows are in it already. Returns its sequence; 0: there is none.
std::uint64_t AppendRun::hand_over_record() {
  if (!redo_) return 0;
  AppendedRecord record{};
  record.head =
      catalog::redo_head(ObjectKind::table, table_.id(),
                         static_cast<std::uint8_t>(RedoType::appended), redo_.bytes().size());
  record.first_row = growth_->rows_before;
  record.rows = rows_;
  record.row_bytes = table_.schema().row_bytes();
  if (table_.encrypted()) {
    record.cipher_page = growth_->cipher_page;
    record.tail_rows = static_cast<std::uint32_t>(std::min(rows_, growth_->tail_rooms));
  }
  catalog::RedoWriter(redo_.bytes()).part(record);
  table_.recorded_rows_.store(record.first_row + record.rows);  // first: see recorded_rows()
  return redo_.hand_over();
}

AppendRun::Step AppendRun::step() {
  if (result_) return Step::done;
  if (!turn_) {
    turn_ = table_.append_turn_.try_take();
    if (!turn_) return Step::busy;
  }
  if (!growth_) begin();
  if (growth_) copy_some();
  if (growth_ && row_ == rows_) finish();
  return result_ ? Step::done : Step::again;
}

void AppendRun::begin() {
  if (table_.dropped()) return fail({Code::dropped, 0, 0});
  if (claim_) {
    begin_reserved();
  } else {
    begin_unreserved();
  }
  if (!growth_) return;
  to_ = growth_->tail;
  room_ = growth_->tail_rooms;
  if (planted(Bug::rows_counted_early)) {
    table_.publish(growth_->rows_before + rows_, *growth_);
    counted_ = true;
  }
}

void AppendRun::begin_unreserved() {
  if (table_.encrypted()) return fail({Code::unsupported, 0, 0});
  if (auto recorded = reserve_record(); !recorded) return fail(recorded.error());
  auto growth = std::make_unique<Table::Growth>();
  if (auto reserved = table_.reserve(rows_, *growth); !reserved) {
    table_.give_back(*growth);
    return fail(reserved.error());
  }
  growth_ = std::move(growth);
}

void AppendRun::begin_reserved() {
  // Another's reservation is answered as one that has ended, and stays as it is: its number can be
  // guessed.
  const bool own = claim_->number == table_.reservation_ && claim_->reserver &&
                   claim_->reserver == table_.reserver_.lock();
  if (!table_.reserved_ || !own) return fail({Code::not_found, 0, 0});
  if (rows_ != table_.reserved_rows_) {
    table_.end_reservation();
    return fail({Code::invalid_argument, 0, 0});
  }
  // The client has sent rows for these slots: it must not send others for them.
  if (auto recorded = reserve_record(); !recorded) {
    table_.end_reservation();
    return fail(recorded.error());
  }
  growth_ = std::move(table_.reserved_);
}

// Some rows at a time, which are still in the cache when they are checked.
void AppendRun::copy_some() {
  constexpr std::uint64_t kBytesAtATime = 16 * 1024;
  const std::uint32_t row_bytes = table_.schema().row_bytes();
  const std::uint64_t at_a_time = std::max<std::uint64_t>(1, kBytesAtATime / row_bytes);
  for (std::size_t bytes = 0; row_ < rows_ && bytes < kStepBytes;) {
    if (room_ == 0) {
      to_ = table_.pool_.at(growth_->pages[next_page_++]) + sizeof(wire::RowPageHeader);
      room_ = table_.schema().rows_per_page();
    }
    const std::uint64_t some = std::min({at_a_time, room_, rows_ - row_});
    const std::span<std::byte> copied(to_, some * row_bytes);
    source_.copy(row_ * row_bytes, copied);
    // Cipher text cannot be checked: any bytes are safe to scan.
    if (!table_.encrypted()) check_rows(copied);
    if (planted(Bug::source_read_twice)) source_.copy(row_ * row_bytes, copied);
    if (redo_) {
      std::ranges::copy(copied,
                        redo_.bytes().begin() +
                            static_cast<std::ptrdiff_t>(sizeof(AppendedRecord) + row_ * row_bytes));
    }
    row_ += some;
    room_ -= some;
    to_ += copied.size();
    bytes += copied.size();
  }
}

void AppendRun::check_rows(std::span<std::byte> copied) {
  const std::uint32_t row_bytes = table_.schema().row_bytes();
  for (std::uint64_t row = 0; row * row_bytes < copied.size(); ++row) {
    const auto found = table_.check_.apply(copied.data() + row * row_bytes);
    if (!found) continue;
    if (error_.wrong_rows++ < Table::kWrongRowsNamed) {
      error_.wrong.push_back({row_ + row, found->column, found->fault});
    }
  }
}

void AppendRun::finish() {
  ESPALIER_ASSERT(next_page_ == growth_->pages.size());
  if (error_.wrong_rows == 0) {
    const std::uint64_t sequence = planted(Bug::record_after_publish) ? 0 : hand_over_record();
    if (!counted_) table_.publish(growth_->rows_before + rows_, *growth_, sequence);
    if (planted(Bug::record_after_publish)) hand_over_record();
    result_.emplace(growth_->rows_before);
  } else {
    table_.give_back(*growth_);
    result_.emplace(std::unexpected(std::move(error_)));
    redo_ = {};
  }
  growth_.reset();
  turn_ = {};
}

}  // namespace espalier::table
