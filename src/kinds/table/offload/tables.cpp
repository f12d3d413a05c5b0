// SPDX-License-Identifier: Apache-2.0
// Offloads on tables: making and opening them, and appending rows. All work by the size of what is
// asked is done by helpers. Queries of them are in queries.cpp.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "engine/connection.hpp"
#include "engine/payload_reader.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/table/append_run.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/offload/append_call.hpp"
#include "kinds/table/offload/table_offloads.hpp"
#include "kinds/table/offload/table_session.hpp"
#include "kinds/table/table_object.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

/// What a helper made of a request for a table.
struct TableState {
  std::optional<Result<std::shared_ptr<table::Table>>> done;
};

Next answer_opened(Call& call, const Result<std::shared_ptr<table::Table>>& opened) {
  if (!opened) return call.fail(opened.error());
  return answer(call, table_calls::Opened{(*opened)->id(), (*opened)->description()});
}

Next create(Call& call, const table_calls::Create& asked) {
  TableState& state = call.state<TableState>();
  if (state.done) return answer_opened(call, *state.done);
  auto schema = table::Schema::decode(bytes_of_text(asked.schema));
  if (!schema) return call.fail({Code::invalid_argument, 0, 0}, "these bytes are no schema");
  tree::StoreCore& store = call.services().store;
  const bool encrypted = (asked.flags & wire::kCreateEncrypted) != 0;
  const auto durability = wire::durability_of(asked.flags >> wire::kCreateDurabilityShift);
  if (const auto words = call.why_not(durability)) {
    return call.fail({Code::unsupported, 0, 0}, *words);
  }
  if (encrypted && durability == Durability::none && call.is_durable()) {
    return call.fail({Code::unsupported, 0, 0},
                     "no slot of an encrypted table may be given twice: it is not made with none");
  }
  const table::TableOptions options{.encrypted = encrypted, .durability = durability};
  return call.helper([&store, &state, options, name = asked.name, schema = std::move(*schema)] {
    state.done = table::create_table(store.catalog, store.pool, name, schema, options);
  });
}

Next open(Call& call, const table_calls::Open& asked) {
  return answer_opened(call, call.services().catalog().open<table::Table>(asked.name));
}

// --- appending -----------------------------------------------------------------------------------

Next append(Call& call, const table_calls::Append& asked) {
  AppendState& state = call.state<AppendState>();
  if (state.run) return end_append(call, state);
  state.table = call.services().catalog().find<table::Table>(asked.table);
  if (!state.table) return call.fail({Code::not_found, 0, asked.table});
  const std::uint32_t row_bytes = state.table->schema().row_bytes();
  if (asked.rows.size() % row_bytes != 0) return fail_for_part_of_a_row(call, row_bytes);
  const auto rows = bytes_of_text(asked.rows);
  return begin_append(call, state, asked.reservation, std::make_unique<table::SpanSource>(rows),
                      rows.size() / row_bytes);
}

/// So long a reservation waits for those of others.
constexpr std::uint64_t kReserveTimeoutNs = 30'000'000'000;
constexpr std::uint64_t kReserveAgainNs = 500'000;

struct ReserveState {
  std::shared_ptr<table::Table> table;
  std::uint64_t since_ns = 0;
  std::optional<Result<table::Reservation>> done;
};

Next reserve(Call& call, const table_calls::Reserve& asked) {
  ReserveState& state = call.state<ReserveState>();
  if (!state.table) {
    state.table = call.services().catalog().find<table::Table>(asked.table);
    if (!state.table) return call.fail({Code::not_found, 0, asked.table});
    // No more than one append can fill.
    const std::uint64_t most = wire::kMessageBytesMax / state.table->schema().row_bytes();
    if (asked.rows > most) {
      return call.fail({Code::invalid_argument, 0, 0}, "too many rows for one append");
    }
    state.since_ns = base::monotonic_ns();
  }
  if (!state.done) {
    return call.helper(
        [&state, rows = asked.rows, reserver = TableSession::reserver_of(call.connection())] {
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
  const auto& slots = (*state.done)->slots;
  return answer(
      call, table_calls::Reserved{(*state.done)->number, text_of(std::as_bytes(std::span(slots)))});
}

const Offload kTableOffloads[] = {
    serve<table_calls::Create, create>(),
    serve<table_calls::Open, open>(),
    serve<table_calls::Append, append>(),
    serve<table_calls::Reserve, reserve>(),
};

}  // namespace

std::span<const Offload> table_offloads() { return kTableOffloads; }

}  // namespace espalier::offload
