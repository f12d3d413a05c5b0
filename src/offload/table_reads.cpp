// SPDX-License-Identifier: Apache-2.0
// Offloads for clients that read tables as they lie, by chunks, or alone by one-sided READs.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "offload/call.hpp"
#include "offload/connection.hpp"
#include "offload/one_sided_fields.hpp"
#include "offload/payload_reader.hpp"
#include "offload/reader_wait.hpp"
#include "table/snapshot.hpp"
#include "table/table.hpp"
#include "wire/table_calls.hpp"

namespace espalier::offload {
namespace {

/// Rows of one chunk.
constexpr std::size_t kChunkBytes = std::size_t{64} << 10;

struct ReadState {
  std::optional<table::TableSnapshot> snapshot;
  std::uint64_t next_row = 0;
  std::uint64_t end_row = 0;
  bool cancelled = false;
  ReaderWait reader;
  wire::QueryNumbers numbers{};
};

Next answer_read(Call& call, const ReadState& state) {
  wire::ResponseHeader header{};
  header.version = state.numbers.rows_sent;
  return call.answer(header, {base::bytes_of(state.numbers)});
}

bool begin_read(Call& call, ReadState& state) {
  auto found = call.services().catalog().find<table::Table>(call.map_number());
  if (!found) return false;
  const auto wanted = PayloadReader(call.payload()).take<wire::RowsWanted>();
  state.snapshot.emplace(std::move(found));
  const std::uint64_t rows = state.snapshot->rows();
  state.next_row = std::min(wanted.first_row, rows);
  state.end_row = state.next_row + std::min(wanted.rows, rows - state.next_row);
  return true;
}

void send_rows(Call& call, ReadState& state, const table::RowSpan& rows, std::size_t bytes) {
  wire::RowsPlace place{};
  place.first_row = state.next_row;
  place.cipher_page = rows.cipher_page;
  place.page_offset = rows.page_offset;
  call.send_chunk(wire::ChunkKind::rows, {},
                  {base::bytes_of(place), {reinterpret_cast<const char*>(rows.rows), bytes}});
  const std::uint64_t sent = bytes / rows.row_bytes;
  state.next_row += sent;
  state.numbers.rows_read += sent;
  state.numbers.rows_passed += sent;
  state.numbers.rows_sent += sent;
  state.numbers.bytes_read += bytes;
  state.numbers.bytes_sent += bytes;
}

// A chunk in each turn, once the client has taken what was sent before.
Next table_read(Call& call) {
  ReadState& state = call.state<ReadState>();
  if (!state.snapshot && !begin_read(call, state)) {
    return call.fail({Code::not_found, 0, call.map_number()});
  }
  const bool over = state.cancelled || state.next_row == state.end_row;
  std::size_t bytes = 0;
  table::RowSpan rows{};
  if (!over) {
    const auto there = state.snapshot->rows_from(state.next_row);
    if (!there) return call.fail(there.error());
    rows = *there;
    const std::uint64_t most = std::max<std::size_t>(kChunkBytes / rows.row_bytes, 1);
    bytes = std::min({most, std::uint64_t{rows.count}, state.end_row - state.next_row}) *
            rows.row_bytes;
  }
  const std::size_t wanted = over ? sizeof state.numbers : sizeof(wire::RowsPlace) + bytes;
  if ((!over && call.has_deferred()) || !call.response_fits(wanted)) {
    const std::uint64_t timeout_ns =
        call.services().reader_timeout_ns.load(std::memory_order_relaxed);
    if (const auto at_ns = state.reader.next_look(timeout_ns)) return call.at(*at_ns);
    return call.fail({Code::busy, 0, 0}, "no row was taken for 30 seconds: it has ended");
  }
  if (over) return answer_read(call, state);
  state.reader.took();
  send_rows(call, state, rows, bytes);
  return call.again();
}

void cancel_read(Call& call) {
  if (ReadState* const state = call.find_state<ReadState>()) state->cancelled = true;
}

Next one_sided_table(Call& call) {
  const auto found = call.services().catalog().find<table::Table>(call.map_number());
  if (!found) return call.fail({Code::not_found, 0, call.map_number()});
  OneSidedHost* const host = call.connection().one_sided.get();
  if (host == nullptr) return call.fail({Code::unsupported, 0, 0});
  wire::TablePlace place{};
  place.header_offset = found->header_offset();
  place.table_id = found->id();
  place.generation = base::load_shared<std::uint32_t>(found->pool().at(place.header_offset) +
                                                      offsetof(wire::TableHeader, generation));
  return answer_one_sided(call, *host, wire::FieldKind::table, base::bytes_of(place));
}

const Offload kTableReadOffloads[] = {
    {.id = wire::OffloadId::table_read,
     .name = "table_read",
     .format = "map: the table's id; payload: RowsWanted",
     .summary = "reads rows as they lie; chunks of RowsPlace and rows, then QueryNumbers",
     .right = Right::read,
     .limits = {.payload_bytes_min = sizeof(wire::RowsWanted),
                .payload_bytes_max = sizeof(wire::RowsWanted)},
     .object = Names::by_id,
     .step = table_read,
     .cancel = cancel_read},
    {.id = wire::OffloadId::one_sided_table,
     .name = "one_sided_table",
     .format = "map: the id of the table to be read",
     .summary = "as one_sided_open, of a table",
     .right = Right::read,
     .limits = {},
     .object = Names::all,
     .step = one_sided_table},
};

}  // namespace

std::span<const Offload> table_read_offloads() { return kTableReadOffloads; }

}  // namespace espalier::offload
