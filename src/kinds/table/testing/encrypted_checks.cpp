// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/testing/encrypted_checks.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "kinds/table/append_run.hpp"
#include "kinds/table/snapshot.hpp"

namespace espalier::table {

void encrypt_for(const Reservation& reservation, std::size_t row_bytes, CtrCipher& cipher,
                 std::span<std::byte> rows) {
  for (const wire::ReservedSlots& some : reservation.slots) {
    const std::size_t bytes = some.slots * row_bytes;
    cipher.apply(some.cipher_page, sizeof(wire::RowPageHeader) + some.first_slot * row_bytes,
                 rows.data(), rows.data(), bytes);
    rows = rows.subspan(bytes);
  }
}

std::string append_encrypted(base::Random& random, Table& table, CtrCipher& cipher,
                             std::span<const std::byte> rows) {
  const std::size_t row_bytes = table.schema().row_bytes();
  std::uint64_t now_ns = 0;
  for (std::size_t at = 0; at < rows.size();) {
    const std::size_t left = (rows.size() - at) / row_bytes;
    const std::size_t count = std::min<std::size_t>(1 + random.below(3000), left);
    const auto reservation = table.reserve_slots(count, now_ns += 2 * Table::kReservationNs);
    if (!reservation) return "a reservation is refused";
    if (random.chance(0.2)) continue;  // given up
    const auto part = rows.subspan(at, count * row_bytes);
    std::vector<std::byte> sent(part.begin(), part.end());
    encrypt_for(*reservation, row_bytes, cipher, sent);
    if (!table.append_reserved(reservation->number, sent)) return "an append is refused";
    at += sent.size();
  }
  return "";
}

namespace {

/// The bytes of every row of a snapshot, decrypted at the snapshot's positions.
std::vector<std::byte> plain_rows(const std::shared_ptr<Table>& table, CtrCipher& cipher) {
  const TableSnapshot snapshot(table);
  std::vector<std::byte> rows;
  for (std::uint64_t page = 0; page < snapshot.pages(); ++page) {
    const RowSpan span = snapshot.page(page).value();
    const std::size_t begin = rows.size();
    rows.resize(begin + span.bytes());
    cipher.apply(span.cipher_page, span.page_offset, span.rows, rows.data() + begin, span.bytes());
  }
  return rows;
}

AppendRun::Appended fill(Table& table, ReservationClaim claim, std::span<const std::byte> rows) {
  const SpanSource source(rows);
  AppendRun run(table, source, rows.size() / table.schema().row_bytes(), std::move(claim));
  run.wait_for_turn();
  while (run.step() != AppendRun::Step::done) {
  }
  return run.result();
}

}  // namespace

std::string difference_in_reservations(std::uint64_t seed, int rounds) {
  base::Random random(seed);
  TableStore store(std::uint64_t{256} << 20);
  const auto table = store.create(schema_of("a i64 not null, b char(400)"), {.encrypted = true});
  const std::size_t row_bytes = table->schema().row_bytes();
  CtrCipher cipher = CtrCipher::derived(KeyBytes{}, table->salt(), kTableKeyInfo).value();
  std::set<std::pair<std::uint64_t, std::uint32_t>> given;
  std::vector<std::byte> wanted;
  std::uint64_t now_ns = 0;
  auto session = std::make_shared<const Reserver>();
  const auto other = std::make_shared<const Reserver>();
  for (int round = 0; round < rounds; ++round) {
    const bool many = random.chance(0.1);
    const std::uint64_t count = 1 + random.below(many ? 12'000 : 300);
    const auto reservation = table->reserve_slots(count, now_ns, session);
    if (!reservation) return "a reservation is refused";
    std::uint64_t slots = 0;
    for (const wire::ReservedSlots& some : reservation->slots) {
      slots += some.slots;
      for (std::uint32_t i = 0; i < some.slots; ++i) {
        if (!given.emplace(some.cipher_page, some.first_slot + i).second) {
          return "a slot was reserved twice";
        }
      }
    }
    if (slots != count) return "another number of slots";
    if (table->reserve_slots(1, now_ns).error().code != Code::busy) return "two reservations";
    if (random.chance(0.1)) {
      now_ns += Table::kReservationNs;
      continue;
    }
    if (random.chance(0.1)) {
      session = std::make_shared<const Reserver>();  // the one before is gone
      continue;
    }
    const std::uint64_t number = reservation->number;
    std::vector<std::byte> rows(count * row_bytes);
    random.fill(std::span(rows).first(std::min<std::size_t>(rows.size(), 4096)));
    const std::vector<std::byte> plain = rows;
    encrypt_for(*reservation, row_bytes, cipher, rows);
    if (random.chance(0.1)) {
      const auto short_one = std::span(rows).first(rows.size() - row_bytes);
      if (fill(*table, {number, other}, short_one)) return "another's append is taken";
      if (fill(*table, {number, session}, short_one)) return "too few rows are taken";
      if (fill(*table, {number, session}, rows)) return "a reservation is used again";
      continue;
    }
    if (fill(*table, {number + 1, session}, rows)) return "a number that was not given is taken";
    if (fill(*table, {number, other}, rows)) return "another fills a reservation";
    if (fill(*table, {number, nullptr}, rows)) return "an append of no session is taken";
    const auto first = fill(*table, {number, session}, rows);
    if (!first || *first != wanted.size() / row_bytes) return "an append is refused";
    if (wanted.size() < (std::size_t{40} << 20)) {
      wanted.insert(wanted.end(), plain.begin(), plain.end());
    } else {
      break;
    }
  }
  if (wanted.size() / row_bytes > table->rows()) return "rows are missing";
  const std::vector<std::byte> found = plain_rows(table, cipher);
  if (!std::equal(wanted.begin(), wanted.end(), found.begin())) return "other rows came back";
  const std::uint64_t pages = table->pages();
  const std::uint64_t full = table->rows() / table->schema().rows_per_page();
  return pages < full ? "there are too few pages" : "";
}

}  // namespace espalier::table
