// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/one_sided_rows.hpp"

#include <algorithm>
#include <coroutine>

#include "base/clock.hpp"
#include "channel/rings/typed_call.hpp"
#include "channel/rings/walk_options.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/client/table_opening.hpp"
#include "wire/session_calls.hpp"

namespace espalier::client {
namespace {

constexpr int kFailuresMax = 3;
constexpr std::uint64_t kRowsNapNs = 1'000'000;

}  // namespace

Result<void> OneSidedRows::open() {
  RemoteSession& session = **session_;
  auto link = session.rings->connection().open_beside(wire::LinkWay::reads);
  if (!link) return fail(Code::connection_lost);  // whatever it is, it says nothing of the table
  link_ = std::move(*link);
  const std::uint64_t asked_ns = base::monotonic_ns();
  Reply answer;
  const auto opened = ask(session.requests, table_calls::OpenReads{read_.table}, answer);
  if (!opened) return std::unexpected(opened.error());
  const auto opening = TableOpening::read(opened->described);
  if (!opening) return std::unexpected(opening.error());
  const auto place = opening->place_of(read_.table);
  if (!place) return std::unexpected(place.error());
  const wire::LeaseGrant& grant = opening->lease;
  lease_.emplace(base::LeaseTerms{.renew_every_ns = grant.renew_every_ns,
                                  .believed_for_ns = grant.believed_for_ns,
                                  .lost_after_ns = grant.lost_after_ns});
  lease_->granted(grant.lease, grant.epoch, asked_ns, base::monotonic_ns());
  const fabric::RemoteRegion region{opening->region.base, opening->region.bytes,
                                    opening->region.key, 0};
  reader_ = std::make_unique<place::TableReader>(
      link_->pair(), link_->completions(), region, link_->endpoint().properties(),
      place::TableTarget{place->header_offset, place->table_id, place->generation, read_.row_bytes},
      [this] { return keep_waiting(); });
  return {};
}

/// Connects, and goes to where the reading is.
Result<void> OneSidedRows::open_anew() {
  if (auto opened = open(); !opened) return opened;
  const std::uint32_t tick = lease_->begin();
  Result<void> sought;
  if (const auto rows = reader_->take_count(); !rows) {
    sought = std::unexpected(rows.error());
  } else {
    if (!end_) {
      const std::uint64_t first = std::min(read_.range.first, *rows);
      end_ = first + std::min(read_.range.count, *rows - first);
      read_.range.first = first;
    }
    if (*rows < *end_) {
      sought = fail(Code::corrupt);
    } else if (read_.range.first < *end_) {
      sought = reader_->seek(read_.range.first, *end_);
    }
  }
  lease_->end(tick);
  return sought;
}

void OneSidedRows::close() {
  if (reader_) sessions_->traffic().add({}, reader_->traffic());
  reader_.reset();
  link_.reset();
  lease_.reset();
}

bool OneSidedRows::renew() {
  if (const auto asked = lease_->due(base::monotonic_ns())) {
    const session_calls::RenewLease renewal{0, {asked->id, asked->oldest}, {}};
    const auto renewed =
        asked->id == 0 ? fail(Code::not_found) : ask((*session_)->requests, renewal);
    if (renewed) {
      lease_->renewed(renewed->epoch, base::monotonic_ns());
    } else {
      lease_->end_all();
    }
  }
  return !lease_->ended();
}

bool OneSidedRows::keep_waiting() {
  if (read_.limits.reached() || !renew()) return false;
  if (link_->pair().state() == fabric::QueuePair::State::error) return false;
  if (++spins_ > kReadSpins) link_->endpoint().wait(kRowsNapNs);
  return true;
}

/// The next piece, if the node is known to have been there since it was read, or not long ago.
Result<place::TableReader::Piece> OneSidedRows::read_piece() {
  if (!reader_) {
    if (auto opened = open_anew(); !opened) return std::unexpected(opened.error());
  }
  spins_ = 0;
  const std::uint32_t tick = lease_->begin();
  auto piece = reader_->next();
  base::ReadyQueue ready(1);
  if (piece && !lease_->believed(base::monotonic_ns())) {
    lease_->wait(std::noop_coroutine(), ready, true);  // so that a renewal is due immediately
    while (ready.empty() && renew()) {
    }
    if (lease_->ended()) piece = fail(Code::connection_lost);
  }
  lease_->end(tick);
  return piece;
}

OneSidedRows::Piece OneSidedRows::next() {
  if (by_rings_) return by_rings_->next();
  while (session_) {
    if (auto reached = read_.limits.reached()) {
      end();
      return std::unexpected(*std::move(reached));
    }
    auto piece = read_piece();
    if (piece) {
      failures_ = 0;
      const std::span<std::byte> rows = piece->rows;
      if (rows.empty()) break;
      read_.range.first = piece->first_row + rows.size() / read_.row_bytes;
      numbers_.rows_sent += rows.size() / read_.row_bytes;
      numbers_.bytes_sent += rows.size();
      if (read_.cipher) {
        read_.cipher->apply(piece->cipher_page, piece->page_offset, rows.data(), rows.data(),
                            rows.size());
      }
      return std::span<const std::byte>(rows);
    }
    const Error error = piece.error();
    if (error.code == Code::dropped || error.code == Code::not_found) {
      end();
      return refuse_table({Code::dropped, 0, 0});
    }
    if (error.code == Code::corrupt) {
      end();
      return refuse_table(error, "what lies in the node's memory is no such table");
    }
    if (read_.limits.reached()) continue;
    close();
    if (++failures_ >= kFailuresMax) return go_by_rings();
  }
  end();
  return std::span<const std::byte>();
}

/// The rest, under the count that was taken, if one was.
OneSidedRows::Piece OneSidedRows::go_by_rings() {
  if (end_) read_.range.count = *end_ - read_.range.first;
  auto begun = RemoteRows::begin(*std::exchange(session_, std::nullopt), std::move(read_));
  if (!begun) return std::unexpected(std::move(begun.error()));
  by_rings_ = *std::move(begun);
  return by_rings_->next();
}

void OneSidedRows::end() {
  if (by_rings_) by_rings_->end();
  if (!session_) return;
  // With the pair the node ends the lease.
  close();
  session_.reset();
}

wire::QueryNumbers OneSidedRows::numbers() const {
  wire::QueryNumbers numbers = numbers_;
  if (by_rings_) {
    const wire::QueryNumbers more = by_rings_->numbers();
    numbers.rows_sent += more.rows_sent;
    numbers.bytes_sent += more.bytes_sent;
  }
  numbers.rows_read = numbers.rows_passed = numbers.rows_sent;
  numbers.bytes_read = numbers.bytes_sent;
  return numbers;
}

}  // namespace espalier::client
