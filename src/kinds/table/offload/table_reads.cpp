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
#include "catalog/catalog.hpp"
#include "engine/connection.hpp"
#include "engine/one_sided_fields.hpp"
#include "engine/one_sided_host.hpp"
#include "engine/reader_wait.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/offload/table_offloads.hpp"
#include "kinds/table/snapshot.hpp"
#include "kinds/table/table.hpp"

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
  return answer(call, table_calls::RowsEnd{state.numbers.rows_sent, state.numbers, {}});
}

bool begin_read(Call& call, ReadState& state, const table_calls::Read& asked) {
  auto found = call.services().catalog().find<table::Table>(asked.table);
  if (!found) return false;
  const wire::RowsWanted& wanted = asked.rows;
  state.snapshot.emplace(std::move(found));
  const std::uint64_t rows = state.snapshot->rows();
  state.next_row = std::min(wanted.first_row, rows);
  state.end_row = state.next_row + std::min(wanted.rows, rows - state.next_row);
  return true;
}

void send_row_span(Call& call, ReadState& state, const table::RowSpan& rows, std::size_t bytes) {
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
Next read(Call& call, const table_calls::Read& asked) {
  ReadState& state = call.state<ReadState>();
  if (!state.snapshot && !begin_read(call, state, asked)) {
    return call.fail({Code::not_found, 0, asked.table});
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
  send_row_span(call, state, rows, bytes);
  return call.again();
}

void cancel_read(Call& call) {
  if (ReadState* const state = call.find_state<ReadState>()) state->cancelled = true;
}

Next open_reads(Call& call, const table_calls::OpenReads& asked) {
  const auto found = call.services().catalog().find<table::Table>(asked.table);
  if (!found) return call.fail({Code::not_found, 0, asked.table});
  OneSidedHost* const host = OneSidedHost::of(call.connection());
  if (host == nullptr) return call.fail({Code::unsupported, 0, 0});
  wire::TablePlace place{};
  place.header_offset = found->header_offset();
  place.table_id = found->id();
  place.generation = base::load_shared<std::uint32_t>(found->pool().at(place.header_offset) +
                                                      offsetof(wire::TableHeader, generation));
  return answer_one_sided(call, *host, wire::FieldKind::table, base::bytes_of(place));
}

const Offload kTableReadOffloads[] = {
    serve<table_calls::Read, read>({.cancel = cancel_read}),
    serve<table_calls::OpenReads, open_reads>(),
};

}  // namespace

std::span<const Offload> table_read_offloads() { return kTableReadOffloads; }

}  // namespace espalier::offload
