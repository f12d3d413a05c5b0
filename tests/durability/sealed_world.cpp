// SPDX-License-Identifier: Apache-2.0
// The encrypted table of a store world: clients encrypt rows for the slots that they are given, so
// no slot is given twice, whatever crashes.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "kinds/table/snapshot.hpp"
#include "tests/durability/store_world.hpp"

namespace espalier::test {
namespace {

// The repeated word of a slot's row.
std::uint64_t word_of_slot(std::uint64_t page, std::uint64_t slot) { return page << 32 | slot; }

}  // namespace

// Returns a reservation once it is durable, and mostly fills it; the next one ends it.
void StoreLife::seal() {
  log::LogWriter& writer = log_->writer();
  if (!reserved_) {
    const std::uint64_t now_ns = ++world_.seals * table::Table::kReservationNs;
    auto reserved = sealed_->reserve_slots(1 + world_.random.below(5), now_ns);
    if (!reserved) return;
    reserved_ = *std::move(reserved);
    reserved_sequence_ = writer.handed_over();
    return;
  }
  if (writer.mark().released() < reserved_sequence_) return;
  const table::Reservation reservation = *std::exchange(reserved_, std::nullopt);
  for (const wire::ReservedSlots& some : reservation.slots) {
    for (std::uint32_t i = 0; i < some.slots; ++i) {
      EXPECT_TRUE(world_.slots.emplace(some.cipher_page, some.first_slot + i).second)
          << "slot " << some.first_slot + i << " of page " << some.cipher_page << " was told twice";
    }
  }
  if (world_.random.below(4) != 0) fill_slots(reservation);
}

void StoreLife::fill_slots(const table::Reservation& reservation) {
  const std::size_t words = sealed_->schema().row_bytes() / sizeof(std::uint64_t);
  std::vector<std::uint64_t> rows;
  for (const wire::ReservedSlots& some : reservation.slots) {
    for (std::uint32_t i = 0; i < some.slots; ++i) {
      rows.insert(rows.end(), words, word_of_slot(some.cipher_page, some.first_slot + i));
    }
  }
  const auto first =
      sealed_->append_reserved(reservation.number, std::as_bytes(std::span(std::as_const(rows))));
  if (first) world_.sealed_rows.asked += rows.size() / words;
}

void StoreLife::check_sealed() {
  NumberTruth& truth = world_.sealed_rows;
  EXPECT_TRUE(truth.may_be(sealed_->rows())) << sealed_->rows() << " rows, " << truth.text();
  truth = {sealed_->rows(), sealed_->rows()};
  const table::TableSnapshot rows(sealed_);
  for (std::uint64_t i = 0; i < rows.pages(); ++i) {
    const table::RowSpan span = rows.page(i).value();
    for (std::uint32_t slot = 0; slot < span.count; ++slot) {
      std::uint64_t word = 0;
      std::memcpy(&word, span[slot], sizeof word);
      EXPECT_EQ(word, word_of_slot(span.cipher_page, slot)) << "a row lies where it was not sealed";
      EXPECT_TRUE(world_.slots.contains({span.cipher_page, slot}));
    }
  }
}

}  // namespace espalier::test
