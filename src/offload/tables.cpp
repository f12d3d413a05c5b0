// SPDX-License-Identifier: Apache-2.0
// Offloads on tables: making and opening them, and appending rows. All work by the size of what is
// asked is done by helpers. Queries of them are in queries.cpp.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "offload/append_call.hpp"
#include "offload/connection.hpp"
#include "offload/object_calls.hpp"
#include "offload/payload_reader.hpp"
#include "table/table_object.hpp"
#include "wire/table_calls.hpp"

namespace espalier::offload {
namespace {

/// What a helper made of a request for a table.
struct TableState {
  std::optional<Result<std::shared_ptr<table::Table>>> done;
};

Next table_create(Call& call) {
  TableState& state = call.state<TableState>();
  if (!state.done) {
    auto schema = table::Schema::decode(bytes_of_text(call.payload()));
    if (!schema) return call.fail({Code::invalid_argument, 0, 0}, "these bytes are no schema");
    if ((call.argument() & ~wire::kCreateEncrypted) != 0) {
      return call.fail({Code::invalid_argument, 0, call.argument()}, "an unknown flag");
    }
    tree::StoreCore& store = call.services().store;
    const table::TableOptions options{.encrypted = call.argument() == wire::kCreateEncrypted};
    return call.helper([&store, &state, options, name = call.key(), schema = std::move(*schema)] {
      state.done = table::create_table(store.catalog, store.pool, name, schema, options);
    });
  }
  if (!*state.done) return call.fail(state.done->error());
  return answer_object(call, (**state.done)->id(), ***state.done);
}

Next table_open(Call& call) {
  const auto opened = call.services().catalog().open<table::Table>(call.key());
  if (!opened) return call.fail(opened.error());
  return answer_object(call, (*opened)->id(), **opened);
}

// --- appending -----------------------------------------------------------------------------------

Next table_append(Call& call) {
  AppendState& state = call.state<AppendState>();
  if (!state.table) {
    state.table = call.services().catalog().find<table::Table>(call.map_number());
    if (!state.table) return call.fail({Code::not_found, 0, call.map_number()});
    const std::uint32_t row_bytes = state.table->schema().row_bytes();
    if (call.payload().size() % row_bytes != 0) {
      return fail_for_part_of_a_row(call, row_bytes);
    }
    const auto rows = bytes_of_text(call.payload());
    return begin_append(call, state, std::make_unique<table::SpanSource>(rows),
                        rows.size() / row_bytes);
  }
  return end_append(call, state);
}

/// So long a reservation waits for those of others.
constexpr std::uint64_t kReserveTimeoutNs = 30'000'000'000;
constexpr std::uint64_t kReserveAgainNs = 500'000;

struct ReserveState {
  std::shared_ptr<table::Table> table;
  std::uint64_t since_ns = 0;
  std::optional<Result<table::Reservation>> done;
};

Next table_reserve(Call& call) {
  ReserveState& state = call.state<ReserveState>();
  if (!state.table) {
    state.table = call.services().catalog().find<table::Table>(call.map_number());
    if (!state.table) return call.fail({Code::not_found, 0, call.map_number()});
    // No more than one append can fill.
    const std::uint64_t most = wire::kMessageBytesMax / state.table->schema().row_bytes();
    if (call.argument() > most) {
      return call.fail({Code::invalid_argument, 0, 0}, "too many rows for one append");
    }
    state.since_ns = base::monotonic_ns();
  }
  if (!state.done) {
    return call.helper([&state, rows = call.argument(), reserver = call.connection().reserver] {
      state.done.emplace(state.table->reserve_slots(rows, base::monotonic_ns(), reserver));
    });
  }
  if (!*state.done) {
    const Error error = state.done->error();
    const std::uint64_t now = base::monotonic_ns();
    if (error.code == Code::busy && now - state.since_ns < kReserveTimeoutNs) {
      state.done.reset();
      return call.at(now + kReserveAgainNs);
    }
    const bool plain = error.code == Code::unsupported;
    return call.fail(error, plain ? "the table is not encrypted" : "");
  }
  wire::ResponseHeader header{};
  header.version = (*state.done)->number;
  const auto& slots = (*state.done)->slots;
  return call.answer(header, {text_of(std::as_bytes(std::span(slots)))});
}

const Offload kTableOffloads[] = {
    {.id = wire::OffloadId::table_create,
     .name = "table_create",
     .format = "key: the table's name, 1 to 255 bytes; payload: its schema; argument: 1 encrypted",
     .summary = "makes an empty table; answers its number, TableFacts and schema",
     .right = Right::admin,
     .limits = {.key_bytes_min = 1,
                .key_bytes_max = kObjectName.key_bytes_max,
                .payload_bytes_max = wire::kSchemaBytesMax},
     .object = Names::by_name,
     .step = table_create},
    {.id = wire::OffloadId::table_open,
     .name = "table_open",
     .format = "key: the table's name",
     .summary = "answers a table's number, TableFacts and schema",
     .right = Right::read,
     .limits = kObjectName,
     .object = Names::by_name,
     .step = table_open},
    {.id = wire::OffloadId::table_append,
     .name = "table_append",
     .format = "map: the table's id; payload: whole rows; key: of an encrypted table, a "
               "reservation's number",
     .summary = "appends all rows or none; answers the number of the first",
     .right = Right::write,
     .limits = {.key_bytes_max = sizeof(std::uint64_t),
                .payload_bytes_max = wire::kMessageBytesMax},
     .object = Names::by_id,
     .step = table_append},
    {.id = wire::OffloadId::table_reserve,
     .name = "table_reserve",
     .format = "map: the table's id; argument: how many rows",
     .summary = "reserves slots of an encrypted table for one append; answers the reservation's "
                "number, and where they lie",
     .right = Right::write,
     .limits = {},
     .object = Names::by_id,
     .step = table_reserve},
};

}  // namespace

std::span<const Offload> table_offloads() { return kTableOffloads; }

}  // namespace espalier::offload
