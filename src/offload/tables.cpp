// SPDX-License-Identifier: Apache-2.0
// Offloads on tables: making, opening, dropping and listing them, appending rows, and queries. All
// work by the size of what is asked is done by helpers.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "offload/call.hpp"
#include "offload/query_run.hpp"
#include "wire/table_calls.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint32_t kNameBytesMax = table::TableCatalog::kNameBytesMax;

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The facts, and the schema behind them.
std::string describe(const table::Table& of) {
  const table::TableStats stats = of.stats();
  wire::TableFacts facts{};
  facts.rows = stats.rows;
  facts.pages = stats.pages;
  facts.memory_bytes = stats.memory_bytes;
  facts.row_bytes = of.schema().row_bytes();
  facts.schema_bytes = static_cast<std::uint32_t>(of.schema().encoded_bytes());
  std::string text(base::bytes_of(facts));
  text.resize(text.size() + facts.schema_bytes);
  of.schema().encode(std::as_writable_bytes(std::span(text)).subspan(sizeof facts));
  return text;
}

Next answer_table(Call& call, const table::Table& of) {
  wire::ResponseHeader header{};
  header.version = of.id();
  const std::string facts = describe(of);
  return call.answer(header, {facts});
}

/// What a helper made of a request for a table.
struct TableState {
  std::optional<Result<std::shared_ptr<table::Table>>> done;
};

Next table_create(Call& call) {
  TableState& state = call.state<TableState>();
  if (!state.done) {
    auto schema = table::Schema::decode(bytes_of_text(call.payload()));
    if (!schema) return call.fail({Code::invalid_argument, 0, 0}, "these bytes are no schema");
    table::TableCatalog& tables = call.services().tables;
    return call.helper([&tables, &state, name = call.key(), schema = std::move(*schema)] {
      state.done = tables.create(name, schema);
    });
  }
  if (!*state.done) return call.fail(state.done->error());
  return answer_table(call, ***state.done);
}

Next table_open(Call& call) {
  const auto opened = call.services().tables.open(call.key());
  if (!opened) return call.fail(opened.error());
  return answer_table(call, **opened);
}

Next table_drop(Call& call) {
  TableState& state = call.state<TableState>();
  if (!state.done) {
    table::TableCatalog& tables = call.services().tables;
    return call.helper([&tables, &state, name = call.key()] {
      // Its memory goes back here, if nothing else holds it.
      const auto dropped = tables.drop(name);
      if (dropped) {
        state.done = std::shared_ptr<table::Table>();
      } else {
        state.done = std::unexpected(dropped.error());
      }
    });
  }
  if (!*state.done) return call.fail(state.done->error());
  return call.answer({});
}

// As items: the name, the number as version, the facts and the schema as value.
Next table_list(Call& call) {
  std::string items;
  std::uint64_t count = 0;
  const table::TableCatalog& tables = call.services().tables;
  for (const std::string& name : tables.names()) {
    const auto opened = tables.open(name);
    if (!opened) continue;  // it was dropped just now
    const std::string facts = describe(**opened);
    items += base::bytes_of(wire::item_header((*opened)->id(), name.size(), facts.size()));
    items += name;
    items += facts;
    ++count;
  }
  if (!call.response_fits(items.size())) return call.writable();
  wire::ResponseHeader header{};
  header.version = count;
  return call.answer(header, {items});
}

// --- appending -----------------------------------------------------------------------------------

struct AppendState {
  std::shared_ptr<table::Table> table;
  std::optional<std::expected<std::uint64_t, table::AppendError>> done;
};

Next table_append(Call& call) {
  AppendState& state = call.state<AppendState>();
  if (!state.table) {
    state.table = call.services().tables.find(call.map_number());
    if (!state.table) return call.fail({Code::not_found, 0, call.map_number()});
    const std::uint32_t row_bytes = state.table->schema().row_bytes();
    if (call.payload().size() % row_bytes != 0) {
      return call.fail({Code::invalid_argument, 0, row_bytes},
                       "not a whole number of rows of " + std::to_string(row_bytes) + " bytes");
    }
    return call.helper([&state, rows = bytes_of_text(call.payload())] {
      state.done.emplace(state.table->append(rows));
    });
  }
  if (!*state.done) {
    const table::AppendError& error = state.done->error();
    return call.fail(error.error, table::describe(error, state.table->schema()));
  }
  wire::ResponseHeader header{};
  header.version = **state.done;  // the number of the first
  return call.answer(header);
}

// --- queries -------------------------------------------------------------------------------------

/// A client that takes nothing for so long gets no more of its query.
constexpr std::uint64_t kReaderTimeoutNs = 30'000'000'000;
// How often a client is looked at that does not take its rows: at first, and later.
constexpr std::uint64_t kSoonNs = 200'000;
constexpr std::uint64_t kLaterNs = 10'000'000;
constexpr std::uint64_t kSoonForNs = 50'000'000;
constexpr std::uint64_t kPlaceNs = 1'000'000;  // between two looks for a place to run

struct QueryState {
  QueryLimits::Place running;  // outlives the run
  QueryLimits::Place waiting;
  std::unique_ptr<QueryRun> run;
  std::uint64_t blocked_since_ns = 0;  // the client takes nothing; 0: it does
};

Next answer_query(Call& call, const QueryRun& run, std::string_view rows) {
  if (run.failure()) return call.fail(run.failure()->error, run.failure()->words);
  wire::QueryNumbers numbers = run.numbers();
  numbers.bytes_sent += rows.size();
  wire::ResponseHeader header{};
  header.version = numbers.rows_sent;
  return call.answer(header, {base::bytes_of(numbers), rows});
}

// So many queries run, so many wait, and more are refused.
Next begin_query(Call& call, QueryState& state) {
  QueryLimits& limits = call.services().queries;
  state.running = limits.run();
  if (!state.running) {
    if (!state.waiting) state.waiting = limits.wait();
    if (!state.waiting) return call.fail({Code::busy, 0, 0});
    return call.at(base::monotonic_ns() + kPlaceNs);
  }
  state.waiting = {};
  auto found = call.services().tables.find(call.map_number());
  if (!found) return call.fail({Code::not_found, 0, call.map_number()});
  state.run =
      std::make_unique<QueryRun>(std::move(found), call.payload(), limits, Services::draw());
  return call.helper_steps([&run = *state.run](StepContext& context) { return run.step(context); });
}

// Not by writable(): that waits for as long as the client likes, and a run holds a place.
Next wait_for_reader(Call& call, QueryState& state) {
  const std::uint64_t now = base::monotonic_ns();
  if (state.blocked_since_ns == 0) state.blocked_since_ns = now;
  const std::uint64_t blocked_ns = now - state.blocked_since_ns;
  if (blocked_ns > kReaderTimeoutNs) {
    return call.fail({Code::busy, 0, 0}, "no row was taken for 30 seconds: the query has ended");
  }
  return call.at(now + (blocked_ns < kSoonForNs ? kSoonNs : kLaterNs));
}

// By turns: helpers fill the stage, and the scheduler sends it once the client has taken what was
// sent before.
Next table_query(Call& call) {
  QueryState& state = call.state<QueryState>();
  if (!state.run) return begin_query(call, state);
  QueryRun& run = *state.run;
  if (run.cancelled()) run.clear_stage();
  const std::span<const std::byte> staged = run.staged();
  const std::string_view rows(reinterpret_cast<const char*>(staged.data()), staged.size());
  if (run.ended() || run.cancelled()) {
    if (!call.response_fits(rows.size() + sizeof(wire::QueryNumbers))) {
      return wait_for_reader(call, state);
    }
    return answer_query(call, run, rows);
  }
  if (!staged.empty()) {
    if (call.has_deferred() || !call.response_fits(rows.size())) {
      return wait_for_reader(call, state);
    }
    state.blocked_since_ns = 0;
    call.send_chunk(wire::ChunkKind::rows, {}, {rows});
    run.clear_stage();
  }
  return call.helper_steps([&run](StepContext& context) { return run.step(context); });
}

void cancel_query(Call& call) {
  if (QueryState* const state = call.find_state<QueryState>(); state && state->run) {
    state->run->cancel();
  }
}

constexpr Limits kName{.key_bytes_min = 1, .key_bytes_max = kNameBytesMax};

const Offload kOffloads[] = {
    {.id = wire::OffloadId::table_create,
     .name = "table_create",
     .format = "key: the table's name, 1 to 255 bytes; payload: its schema",
     .summary = "makes an empty table; answers its number, TableFacts and schema",
     .right = Right::admin,
     .limits = {.key_bytes_min = 1,
                .key_bytes_max = kNameBytesMax,
                .payload_bytes_max = wire::kSchemaBytesMax},
     .step = table_create},
    {.id = wire::OffloadId::table_open,
     .name = "table_open",
     .format = "key: the table's name",
     .summary = "answers a table's number, TableFacts and schema",
     .limits = kName,
     .step = table_open},
    {.id = wire::OffloadId::table_drop,
     .name = "table_drop",
     .format = "key: the table's name",
     .summary = "removes a table; queries of it that run end with dropped",
     .right = Right::admin,
     .limits = kName,
     .step = table_drop},
    {.id = wire::OffloadId::table_list,
     .name = "table_list",
     .format = "nothing",
     .summary = "answers the names, numbers, TableFacts and schemas of all tables, as items",
     .limits = {},
     .step = table_list},
    {.id = wire::OffloadId::table_append,
     .name = "table_append",
     .format = "map: the table's number; payload: whole rows",
     .summary = "appends all rows or none; answers the number of the first",
     .right = Right::write,
     .limits = {.payload_bytes_max = wire::kMessageBytesMax},
     .step = table_append},
    {.id = wire::OffloadId::table_query,
     .name = "table_query",
     .format = "map: the table's number; payload: a pipeline",
     .summary = "runs it beside the memory; chunks of result rows, then QueryNumbers and the last "
                "rows",
     .right = Right::read,
     .limits = {.payload_bytes_max = wire::kPipelineBytesMax},
     .step = table_query,
     .cancel = cancel_query},
};

}  // namespace

std::span<const Offload> table_offloads() { return kOffloads; }

}  // namespace espalier::offload
