// SPDX-License-Identifier: Apache-2.0
// Queries of tables: a pipeline that helpers run beside the memory, whose rows go by chunks or into
// buffers of the client's.
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "catalog/catalog.hpp"
#include "engine/connection.hpp"
#include "engine/payload_reader.hpp"
#include "engine/reader_wait.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/loaded_pipeline.hpp"
#include "kinds/table/offload/counted_query.hpp"
#include "kinds/table/offload/loaded_pipelines.hpp"
#include "kinds/table/offload/loaded_run.hpp"
#include "kinds/table/offload/query_limits.hpp"
#include "kinds/table/offload/query_run.hpp"
#include "kinds/table/offload/result_host.hpp"
#include "kinds/table/offload/table_offloads.hpp"
#include "kinds/table/offload/table_services.hpp"
#include "kinds/table/table.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint64_t kPlaceNs = 1'000'000;  // between two looks whether it has a place to run
constexpr std::uint64_t kHalfNs = 200'000;     // for half of the buffers, where some are free

struct QueryState {
  std::vector<std::byte> message;             // of a loaded pipeline, with this run's constants
  std::optional<SecretKeys> keys;             // until it runs
  std::unique_ptr<QueryLimits::Query> query;  // outlives the run
  CountedQuery counted;
  std::unique_ptr<QueryRun> run;
  std::uint64_t deadline_ns = JobOptions::kNoDeadline;
  std::shared_ptr<ResultSet> buffers;   // null: rows go by chunks
  std::optional<ResultWriter> results;  // since the first rows were written there
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
  return answer(call, table_calls::RowsEnd{numbers.rows_sent, numbers, rows});
}

// The buffers of the request's response ring, where it wants its rows there.
std::optional<RunRefusal> take_buffers(Call& call, QueryState& state,
                                       const table_calls::Query& asked) {
  if ((asked.options & wire::kQueryIntoBuffers) == 0) return std::nullopt;
  const ResultHost* const host = ResultHost::of(call.connection());
  if (host != nullptr) state.buffers = host->find(call.response_ring());
  if (state.buffers) return std::nullopt;
  return RunRefusal{{Code::not_found, 0, 0}, "this response ring has no buffers for results"};
}

// From when the request came.
void take_deadline(const table_calls::Query& asked, QueryState& state) {
  const std::uint64_t ms = asked.options >> wire::kQueryTimeShift;
  if (ms != 0) state.deadline_ns = base::monotonic_ns() + ms * 1'000'000;
}

bool is_late(const QueryState& state) {
  return state.deadline_ns != JobOptions::kNoDeadline && base::monotonic_ns() >= state.deadline_ns;
}

Next end_late(Call& call, QueryState& state) {
  state.counted.fail();
  return call.fail({Code::system, 0, ETIMEDOUT}, "the query did not end before its deadline");
}

Next go_on(Call& call, QueryState& state);

// So many queries run, so many are open, and more are refused.
Next begin_query(Call& call, QueryState& state, const table_calls::Query& asked) {
  Services& services = call.services();
  TableServices& tables = services.part<TableServices>();
  if (const std::string_view key = asked.keys; !key.empty() && !state.counted.begun()) {
    if (key.size() != sizeof(wire::RunKeys)) {
      call.wipe_key();
      tables.query_counts.refused.fetch_add(1, std::memory_order_relaxed);
      return call.fail({Code::invalid_argument, 0, 0}, "these bytes are no keys of a run");
    }
    auto keys = SecretKeys::make();
    if (keys) std::memcpy(&**keys, key.data(), key.size());
    call.wipe_key();
    if (!keys) {
      tables.query_counts.refused.fetch_add(1, std::memory_order_relaxed);
      return call.fail(keys.error(), "this node may lock no more memory for keys (RLIMIT_MEMLOCK)");
    }
    state.keys.emplace(*std::move(keys));
  }
  if (!state.counted.begun()) {
    auto found = services.catalog().find<table::Table>(asked.table);
    if (!found) {
      tables.query_counts.refused.fetch_add(1, std::memory_order_relaxed);
      return call.fail({Code::not_found, 0, asked.table});
    }
    state.counted.begin(std::move(found), tables.query_counts);
    take_deadline(asked, state);
    if (const auto refusal = take_buffers(call, state, asked)) {
      state.counted.refuse();
      return call.fail(refusal->error, refusal->words);
    }
  }
  if (const auto payload = bytes_of_text(asked.pipeline);
      table::is_loaded_run(payload) && state.message.empty()) {
    auto message = message_of_run(LoadedPipelines::of(call.connection()),
                                  state.counted.table()->id(), payload);
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
  if (is_late(state)) return end_late(call, state);
  QueryLimits& limits = tables.queries;
  if (!state.query) state.query = limits.open(call.account(), &call.connection());
  if (!state.query) {
    state.counted.refuse();
    return call.fail({Code::busy, 0, 0});
  }
  if (!state.query->take_place()) return call.at(base::monotonic_ns() + kPlaceNs);
  state.counted.run();
  const std::string_view pipeline = state.message.empty() ? asked.pipeline : text_of(state.message);
  state.run =
      std::make_unique<QueryRun>(state.counted.table(), pipeline, limits, state.query->account(),
                                 tables.regexes, Services::draw(), std::move(state.keys));
  return go_on(call, state);
}

// Others run meanwhile.
Next wait_for_reader(Call& call, QueryState& state, std::uint64_t soon_ns = ReaderWait::kSoonNs) {
  state.query->give_place();
  const std::uint64_t timeout_ns =
      call.services().reader_timeout_ns.load(std::memory_order_relaxed);
  if (is_late(state)) return end_late(call, state);
  if (const auto at_ns = state.reader.next_look(timeout_ns, soon_ns)) return call.at(*at_ns);
  state.counted.fail();
  return call.fail({Code::busy, 0, 0}, "no row was taken for 30 seconds: the query has ended");
}

// Whether the rows of the stage go into a buffer.
bool goes_into_buffer(Call& call, QueryState& state) {
  if (!state.buffers || state.results) return state.results.has_value();
  const std::size_t block = state.run->stage_bytes();
  // Another query of this ring has them, or a row is longer than each.
  if (state.buffers->in_use || block > state.buffers->offer.buffer_bytes) {
    state.buffers.reset();
    return false;
  }
  state.results.emplace(*ResultHost::of(call.connection()), state.buffers, block);
  return true;
}

Next refuse_buffers(Call& call, QueryState& state) {
  state.counted.fail();
  return call.fail({Code::invalid_argument, 0, 0},
                   "the node may not write into the buffers that were offered for results");
}

// A message that says where rows lie comes behind them: it is sent by the pair that wrote them, or
// they are there already.
void tell_of(Call& call, QueryState& state, const wire::ResultPlace& place) {
  state.reader.took();
  call.services().part<TableServices>().result_buffer_bytes.fetch_add(place.bytes,
                                                                      std::memory_order_relaxed);
  const wire::ReplyMessage<table_calls::RowsPlaced> chunk({place});
  call.send_chunk(wire::ChunkKind::placed, chunk.header(), {chunk.payload()});
}

// False: not now, or never, if it is broken.
bool write_stage(Call& call, QueryState& state) {
  QueryRun& run = *state.run;
  const auto place = state.results->write(run.stage(), run.staged().size());
  if (!place) return false;
  tell_of(call, state, *place);
  run.clear_stage();
  state.counted.sent(run.numbers());
  return true;
}

// Whether a chunk with so many bytes may be sent.
bool may_send(Call& call, std::size_t bytes) {
  return !call.has_deferred() && call.response_fits(bytes);
}

// Reports filled buffers to the client. Returns how the step ends; nullopt: all were reported.
std::optional<Next> tell_of_filled(Call& call, QueryState& state) {
  std::deque<QueryRun::Filled>& filled = state.run->filled();
  if (filled.empty()) return std::nullopt;
  for (; !filled.empty(); filled.pop_front()) {
    if (!may_send(call, sizeof(wire::ResultPlace))) return wait_for_reader(call, state);
    const auto place = state.results->close_buffer(filled.front().room, filled.front().bytes);
    if (!place) return refuse_buffers(call, state);
    tell_of(call, state, *place);
  }
  state.counted.sent(state.run->numbers());
  return std::nullopt;
}

// Half of the buffers at a time, so that the client reads one half while the other is filled. Less
// where it has not given so many back for a while.
bool open_buffers(QueryState& state) {
  ResultWriter& results = *state.results;
  const std::uint32_t half = (results.buffers() + 1) / 2;
  const std::uint32_t free = results.free_buffers();
  if (free == 0 || (free < half && !state.reader.waited(kHalfNs))) return false;
  std::vector<ResultRoom> rooms;
  rooms.reserve(half);
  while (rooms.size() < half && results.free_buffers() != 0) {
    rooms.push_back(*results.open_buffer());
  }
  state.run->write_into(std::move(rooms));
  state.reader.took();
  return true;
}

// Helpers go on: into buffers of the client's, where its memory is mapped, else into the stage.
Next go_on(Call& call, QueryState& state) {
  QueryRun& run = *state.run;
  QueryLimits::Query& query = *state.query;
  if (query.must_yield()) query.give_place();
  if (!query.take_place()) {
    return is_late(state) ? end_late(call, state) : call.at(base::monotonic_ns() + kPlaceNs);
  }
  if (state.results && run.only_stores() && state.results->maps() && !open_buffers(state)) {
    return wait_for_reader(call, state, ReaderWait::kVerySoonNs);
  }
  return call.helper_steps(
      [&run, &query](StepContext& context) {
        const JobStep says = run.step(context);
        query.worked(run.busy_ns());
        return says == JobStep::again && query.must_yield() ? JobStep::done : says;
      },
      state.deadline_ns);
}

Next send_rows(Call& call, QueryState& state, std::string_view rows) {
  const bool placed = goes_into_buffer(call, state);
  if (!may_send(call, placed ? sizeof(wire::ResultPlace) : rows.size())) {
    return wait_for_reader(call, state);
  }
  if (placed) {
    if (state.results->broken()) return refuse_buffers(call, state);
    if (!write_stage(call, state)) return wait_for_reader(call, state, ReaderWait::kVerySoonNs);
    return go_on(call, state);
  }
  state.reader.took();
  call.send_chunk(wire::ChunkKind::rows, {}, {rows});
  state.run->clear_stage();
  state.counted.sent(state.run->numbers());
  return go_on(call, state);
}

// The last rows come with the answer, but for those that are in a buffer already.
Next end_query(Call& call, QueryState& state, std::string_view rows) {
  if (!call.response_fits(rows.size() + sizeof(wire::QueryNumbers))) {
    return wait_for_reader(call, state);
  }
  if (state.results && state.results->broken()) return refuse_buffers(call, state);
  return answer_query(call, state, rows);
}

// Alternates: helpers fill the stage, or buffers; the scheduler sends the stage, or reports
// buffers, once the client has taken what was sent before, or has a free buffer.
Next query(Call& call, const table_calls::Query& asked) {
  QueryState& state = call.state<QueryState>();
  if (!state.run) return begin_query(call, state, asked);
  QueryRun& run = *state.run;
  state.counted.read(run.numbers());
  // Buffers that will not be reported return to the node when the run ends.
  const bool late = !run.ended() && is_late(state);
  if (run.cancelled() || run.failure() || late) {
    run.filled().clear();
    run.clear_stage();
  }
  if (late) return end_late(call, state);
  if (const auto next = tell_of_filled(call, state)) return *next;
  const std::string_view rows = text_of(run.staged());
  if (run.ended() || run.cancelled()) return end_query(call, state, rows);
  return rows.empty() ? go_on(call, state) : send_rows(call, state, rows);
}

void cancel_query(Call& call) {
  if (QueryState* const state = call.find_state<QueryState>(); state && state->run) {
    state->run->cancel();
  }
}

const Offload kQueryOffloads[] = {serve<table_calls::Query, query>({.cancel = cancel_query})};

}  // namespace

std::span<const Offload> query_offloads() { return kQueryOffloads; }

}  // namespace espalier::offload
