// SPDX-License-Identifier: Apache-2.0
// Offloads on tables: making and opening them, appending rows, and queries. All work by the size of
// what is asked is done by helpers.
#include <algorithm>
#include <cstring>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "offload/append_call.hpp"
#include "offload/connection.hpp"
#include "offload/counted_query.hpp"
#include "offload/object_calls.hpp"
#include "offload/payload_reader.hpp"
#include "offload/query_run.hpp"
#include "offload/reader_wait.hpp"
#include "table/loaded_pipeline.hpp"
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
    const std::string_view key = call.key();
    if (key.empty()) {
      return call.helper([&state, rows = bytes_of_text(call.payload())] {
        state.done.emplace(state.table->append(rows));
      });
    }
    if (key.size() != sizeof(std::uint64_t)) {
      return call.fail({Code::invalid_argument, 0, 0}, "the key is no reservation's number");
    }
    std::uint64_t reservation = 0;
    std::memcpy(&reservation, key.data(), sizeof reservation);
    return call.helper([&state, reservation, rows = bytes_of_text(call.payload())] {
      const auto appended = state.table->append_reserved(reservation, rows);
      if (appended) {
        state.done.emplace(*appended);
      } else {
        state.done.emplace(std::unexpected(table::AppendError{appended.error(), 0, {}}));
      }
    });
  }
  return answer_append(call, state);
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
    return call.helper([&state, rows = call.argument()] {
      state.done.emplace(state.table->reserve_slots(rows, base::monotonic_ns()));
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

// --- queries -------------------------------------------------------------------------------------

constexpr std::uint64_t kPlaceNs = 1'000'000;  // between two looks for a place to run

struct QueryState {
  std::vector<std::byte> message;  // of a loaded pipeline, with this run's constants
  std::optional<SecretKeys> keys;  // until it runs
  QueryLimits::Place running;      // outlives the run
  QueryLimits::Place waiting;
  CountedQuery counted;
  std::unique_ptr<QueryRun> run;
  ReaderWait reader;
};

Next answer_query(Call& call, QueryState& state, std::string_view rows) {
  const QueryRun& run = *state.run;
  wire::QueryNumbers numbers = run.numbers();
  state.counted.read(numbers);
  if (run.failure()) {
    state.counted.fail();
    return call.fail(run.failure()->error, run.failure()->words);
  }
  numbers.bytes_sent += rows.size();
  state.counted.sent(numbers);
  wire::ResponseHeader header{};
  header.version = numbers.rows_sent;
  return call.answer(header, {base::bytes_of(numbers), rows});
}

struct RunRefusal {
  Error error;
  std::string words;
};

/// The pipeline that a run of a loaded one means.
std::expected<std::vector<std::byte>, RunRefusal> message_of_run(
    const LoadedPipelines& loaded, std::uint32_t table, std::span<const std::byte> payload) {
  const auto refuse = [](Code code, std::string words) {
    return std::unexpected(RunRefusal{{code, 0, 0}, std::move(words)});
  };
  auto run = table::decode_loaded_run(payload);
  if (!run) return refuse(Code::invalid_argument, run.error().message());
  const auto kept = loaded.find(run->pipeline);
  if (!kept) {
    return refuse(Code::not_found, "this session keeps no pipeline of the number " +
                                       std::to_string(run->pipeline) + ": load it again");
  }
  if (kept->table != table) {
    return refuse(Code::invalid_argument, "the pipeline was loaded for another table");
  }
  auto message = table::with_constants(kept->message, std::move(run->constants));
  if (!message) return refuse(Code::invalid_argument, message.error().message());
  return *std::move(message);
}

// So many queries run, so many wait, and more are refused.
Next begin_query(Call& call, QueryState& state) {
  Services& services = call.services();
  if (const std::string_view key = call.key(); !key.empty() && !state.counted.begun()) {
    if (key.size() != sizeof(wire::RunKeys)) {
      call.wipe_key();
      services.query_counts.refused.fetch_add(1, std::memory_order_relaxed);
      return call.fail({Code::invalid_argument, 0, 0}, "these bytes are no keys of a run");
    }
    auto keys = SecretKeys::make();
    if (keys) std::memcpy(&**keys, key.data(), key.size());
    call.wipe_key();
    if (!keys) {
      services.query_counts.refused.fetch_add(1, std::memory_order_relaxed);
      return call.fail(keys.error(), "this node may lock no more memory for keys (RLIMIT_MEMLOCK)");
    }
    state.keys.emplace(*std::move(keys));
  }
  if (!state.counted.begun()) {
    auto found = services.catalog().find<table::Table>(call.map_number());
    if (!found) {
      services.query_counts.refused.fetch_add(1, std::memory_order_relaxed);
      return call.fail({Code::not_found, 0, call.map_number()});
    }
    state.counted.begin(std::move(found), services.query_counts);
  }
  if (const auto payload = bytes_of_text(call.payload());
      table::is_loaded_run(payload) && state.message.empty()) {
    auto message =
        message_of_run(call.connection().pipelines, state.counted.table()->id(), payload);
    if (!message) {
      state.counted.fail();
      return call.fail(message.error().error, message.error().words);
    }
    state.message = *std::move(message);
  }
  if (state.counted.table()->dropped()) {
    state.counted.fail();
    return call.fail({Code::dropped, 0, 0});
  }
  QueryLimits& limits = services.queries;
  state.running = limits.run();
  if (!state.running) {
    if (!state.waiting) state.waiting = limits.wait();
    if (!state.waiting) {
      state.counted.refuse();
      return call.fail({Code::busy, 0, 0});
    }
    return call.at(base::monotonic_ns() + kPlaceNs);
  }
  state.waiting = {};
  state.counted.run();
  const std::string_view pipeline = state.message.empty() ? call.payload() : text_of(state.message);
  state.run = std::make_unique<QueryRun>(state.counted.table(), pipeline, limits, services.regexes,
                                         Services::draw(), std::move(state.keys));
  return call.helper_steps([&run = *state.run](StepContext& context) { return run.step(context); });
}

Next wait_for_reader(Call& call, QueryState& state) {
  if (const auto at_ns = state.reader.next_look()) return call.at(*at_ns);
  state.counted.fail();
  return call.fail({Code::busy, 0, 0}, "no row was taken for 30 seconds: the query has ended");
}

// By turns: helpers fill the stage, and the scheduler sends it once the client has taken what was
// sent before.
Next table_query(Call& call) {
  QueryState& state = call.state<QueryState>();
  if (!state.run) return begin_query(call, state);
  QueryRun& run = *state.run;
  state.counted.read(run.numbers());
  if (run.cancelled()) run.clear_stage();
  const std::string_view rows = text_of(run.staged());
  if (run.ended() || run.cancelled()) {
    if (!call.response_fits(rows.size() + sizeof(wire::QueryNumbers))) {
      return wait_for_reader(call, state);
    }
    return answer_query(call, state, rows);
  }
  if (!rows.empty()) {
    if (call.has_deferred() || !call.response_fits(rows.size())) {
      return wait_for_reader(call, state);
    }
    state.reader.took();
    call.send_chunk(wire::ChunkKind::rows, {}, {rows});
    run.clear_stage();
    state.counted.sent(run.numbers());
  }
  return call.helper_steps([&run](StepContext& context) { return run.step(context); });
}

void cancel_query(Call& call) {
  if (QueryState* const state = call.find_state<QueryState>(); state && state->run) {
    state->run->cancel();
  }
}

const Offload kOffloads[] = {
    {.id = wire::OffloadId::table_create,
     .name = "table_create",
     .format = "key: the table's name, 1 to 255 bytes; payload: its schema; argument: 1 encrypted",
     .summary = "makes an empty table; answers its number, TableFacts and schema",
     .right = Right::admin,
     .limits = {.key_bytes_min = 1,
                .key_bytes_max = kObjectName.key_bytes_max,
                .payload_bytes_max = wire::kSchemaBytesMax},
     .step = table_create},
    {.id = wire::OffloadId::table_open,
     .name = "table_open",
     .format = "key: the table's name",
     .summary = "answers a table's number, TableFacts and schema",
     .limits = kObjectName,
     .step = table_open},
    {.id = wire::OffloadId::table_append,
     .name = "table_append",
     .format = "map: the table's id; payload: whole rows; key: of an encrypted table, a "
               "reservation's number",
     .summary = "appends all rows or none; answers the number of the first",
     .right = Right::write,
     .limits = {.key_bytes_max = sizeof(std::uint64_t),
                .payload_bytes_max = wire::kMessageBytesMax},
     .step = table_append},
    {.id = wire::OffloadId::table_query,
     .name = "table_query",
     .format = "map: the table's id; payload: a pipeline; key: RunKeys, if it needs any",
     .summary = "runs it beside the memory; chunks of result rows, then QueryNumbers and the last "
                "rows",
     .right = Right::read,
     .limits = {.key_bytes_max = sizeof(wire::RunKeys),
                .payload_bytes_max = wire::kPipelineBytesMax},
     .step = table_query,
     .cancel = cancel_query},
    {.id = wire::OffloadId::table_reserve,
     .name = "table_reserve",
     .format = "map: the table's id; argument: how many rows",
     .summary = "reserves slots of an encrypted table for one append; answers the reservation's "
                "number, and where they lie",
     .right = Right::write,
     .limits = {},
     .step = table_reserve},
};

}  // namespace

std::span<const Offload> table_offloads() { return kOffloads; }

}  // namespace espalier::offload
