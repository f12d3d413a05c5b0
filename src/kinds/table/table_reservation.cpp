// SPDX-License-Identifier: Apache-2.0
// Appends to encrypted tables. A client that encrypts a row must know its place first, because its
// counter blocks contain the place; and a place may be issued once only, because two texts under
// one counter block reveal both. So slots are reserved, and those that stay empty are dead: the
// page ends before them.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/until_fork.hpp"
#include "kinds/table/append_run.hpp"
#include "kinds/table/planted_table_bugs.hpp"
#include "kinds/table/redo_record.hpp"
#include "kinds/table/table_growth.hpp"

namespace espalier::table {

const std::shared_ptr<const Reserver>& process_reserver() {
  struct Process {
    std::shared_ptr<const Reserver> reserver = std::make_shared<const Reserver>();
  };
  static constinit base::PerProcess<Process> process;
  return process.get().reserver;
}

Result<Reservation> Table::reserve_slots(std::uint64_t rows, std::uint64_t now_ns,
                                         const std::shared_ptr<const Reserver>& reserver) {
  if (!encrypted_) return fail(Code::unsupported);
  if (rows == 0) return fail(Code::invalid_argument);
  auto room = catalog::RedoRoom::reserve(redo(), sizeof(ReservedRecord));
  if (!room) return std::unexpected(room.error());
  const AppendTurn::Held turn = append_turn_.try_take();
  if (!turn) return fail(Code::busy);
  if (dropped()) return fail(Code::dropped);
  if (reserved_) {
    if (now_ns < reserved_until_ns_ && !reserver_.expired()) return fail(Code::busy);
    end_reservation();
  }
  auto growth = std::make_unique<Growth>();
  if (auto grown = reserve(rows, *growth); !grown) {
    give_back(*growth);
    return std::unexpected(grown.error());
  }
  growth->cipher_page = next_cipher_page_;
  next_cipher_page_ += growth->pages.size();
  Reservation made{++reservation_, {}};
  std::uint64_t left = rows;
  const auto give = [&](std::uint64_t page, std::uint64_t first_slot, std::uint64_t rooms) {
    const auto slots = static_cast<std::uint32_t>(std::min(left, rooms));
    if (slots != 0) made.slots.push_back({page, static_cast<std::uint32_t>(first_slot), slots});
    left -= slots;
  };
  if (growth->tail_rooms != 0) {
    const wire::RowPageEntry last = page(growth->pages_before - 1);
    give(cipher_page(last), growth->rows_before - last.first_row, growth->tail_rooms);
  }
  for (std::size_t i = 0; i < growth->pages.size(); ++i) {
    give(growth->cipher_page + i, 0, schema_.rows_per_page());
  }
  ESPALIER_ASSERT(left == 0);
  if (*room) record_slots(*room, growth->rows_before, growth->tail_rooms != 0);
  reserved_ = std::move(growth);
  reserver_ = reserver;
  reserved_rows_ = rows;
  reserved_until_ns_ = now_ns + kReservationNs;
  return made;
}

void Table::record_slots(catalog::RedoRoom& room, std::uint64_t rows_before, bool tail_used) {
  write_reserved(room.bytes(), id_, rows_before, next_cipher_page_, tail_used);
  room.hand_over();
}

std::optional<Table::GivenSlots> Table::given_slots() {
  const AppendTurn::Held turn = append_turn_.try_take();
  if (!turn) return std::nullopt;
  const bool reserves_tail = reserved_ && reserved_->tail_rooms != 0;
  return GivenSlots{next_cipher_page_, tail_closed_ || reserves_tail};
}

// So far that no life whose records are lost can have come there; and there are as many as that
// eight million times.
Result<void> Table::go_on_after_loss() {
  constexpr std::uint64_t kPagesLeftOut = std::uint64_t{1} << 40;
  if (!encrypted_) return {};
  auto room = catalog::RedoRoom::reserve(redo(), sizeof(ReservedRecord));
  if (!room) return std::unexpected(room.error());
  const AppendTurn::Held turn = append_turn_.take();
  next_cipher_page_ += kPagesLeftOut;
  tail_closed_ = true;
  if (*room) record_slots(*room, all_rows_, true);
  return {};
}

Result<std::uint64_t> Table::append_reserved(std::uint64_t reservation,
                                             std::span<const std::byte> rows) {
  ESPALIER_ASSERT(rows.size() % schema_.row_bytes() == 0);
  const SpanSource source(rows);
  AppendRun run(*this, source, rows.size() / schema_.row_bytes(), ReservationClaim{reservation});
  run.wait_for_turn();
  while (run.step() != AppendRun::Step::done) {
  }
  if (!run.result()) return std::unexpected(run.result().error().error);
  return *run.result();
}

/// Gives the reservation up. Its slots of the last page stay empty for ever; its pages go back, and
/// their numbers are not given again.
void Table::end_reservation() {
  const bool has_tail = reserved_->tail_rooms != 0;
  if (has_tail && !planted(Bug::slot_given_twice)) tail_closed_ = true;
  give_back(*reserved_);
  reserved_.reset();
}

}  // namespace espalier::table
