// SPDX-License-Identifier: Apache-2.0
// A reduction takes its first rows' lines into the cache in its first step, so that all that the
// turn took from its clients is on its way before the first is summed; then 64 rows a turn, so that
// others go on [RAMBDA §IV-C].
#include "kinds/embedding/offload/reduction_calls.hpp"

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.hpp"
#include "engine/principal.hpp"
#include "engine/typed_call.hpp"
#include "kinds/embedding/offload/message_words.hpp"
#include "kinds/embedding/reducer.hpp"
#include "kinds/embedding/small_reduction.hpp"
#include "kinds/embedding/tables_reducer.hpp"

namespace espalier::offload {
namespace {

using embedding::EmbeddingTable;

Next fail_no_table(Call& call, std::uint32_t number) {
  return call.fail({Code::not_found, 0, number});
}

Next fail_in_words(Call& call, const TableError& error) {
  return call.fail(error.error, error.words);
}

/// The table that was found last: most requests are of few tables, and the catalogue has a lock. It
/// keeps none of them.
struct LastTable final : SchedulerPart {
  std::uint32_t number = 0;
  std::weak_ptr<EmbeddingTable> table;
};

std::shared_ptr<EmbeddingTable> find_table(Call& call, std::uint32_t number) {
  LastTable& last = call.scheduler_part<LastTable>();
  if (last.number == number) {
    auto table = last.table.lock();
    if (table != nullptr && !table->dropped()) return table;  // no number is given again
  }
  auto table = call.catalog().find<EmbeddingTable>(number);
  last.number = number;
  last.table = table;
  return table;
}

// --- of one table --------------------------------------------------------------------------------

/// Of a message, where words cannot be read as they lie.
struct OwnWords {
  std::vector<std::uint32_t> ids, offsets;
  std::vector<float> weights, vector;
};

/// A reduction under way. It has memory of its own, being more than a request has room for.
struct ReductionRun {
  std::shared_ptr<EmbeddingTable> table;
  OwnWords own;
  std::vector<float> results;
  std::optional<embedding::Reducer> reducer;
  bool over = false;
};

struct ReduceState {
  std::unique_ptr<ReductionRun> run;
};

/// One of a few rows: these are asked for, and it is done in the next step.
struct SmallReduceState {
  std::shared_ptr<EmbeddingTable> table;
  embedding::SmallReduction reduction;
};

embedding::ReductionWork work_of(const embedding_calls::Reduce& asked, OwnWords& own) {
  embedding::ReductionWork work;
  work.reduction = static_cast<Reduction>(asked.shape.reduction);
  work.bags.ids = words_of_message(asked.ids, own.ids);
  work.bags.offsets = words_of_message(asked.offsets, own.offsets);
  work.bags.weights = words_of_message(asked.weights, own.weights);
  work.bags.grouping = asked.shape.grouping;
  work.vector = words_of_message(asked.vector, own.vector);
  return work;
}

Next begin_small(Call& call, const embedding::ReductionWork& work,
                 std::shared_ptr<EmbeddingTable> table) {
  SmallReduceState& state = call.new_state<SmallReduceState>();
  state.table = std::move(table);
  if (const auto begun = state.reduction.begin(*state.table, work.bags.ids); !begun) {
    return fail_in_words(call, embedding::error_of(begun.error()));
  }
  return call.again();
}

Next finish_small(Call& call, const embedding_calls::Reduce& asked) {
  SmallReduceState& state = call.state<SmallReduceState>();
  OwnWords own;
  const embedding::ReductionWork work = work_of(asked, own);
  const std::uint32_t width =
      embedding::result_width(work.reduction, state.table->options().dimension);
  std::array<float, embedding::SmallReduction::kFloatsMax> floats;
  const auto results = std::span(floats).first(work.bags.offsets.size() * width);
  if (!call.response_fits(results.size_bytes())) return call.writable();
  state.table->count(state.reduction.fold(*state.table, work, results));
  return answer(call, embedding_calls::Reduced{
                          {reinterpret_cast<const char*>(results.data()), results.size_bytes()}});
}

Next begin_reduction(Call& call, const embedding_calls::Reduce& asked) {
  auto table = find_table(call, call.map_number());
  if (table == nullptr || !table->has_name(asked.named)) {
    return fail_no_table(call, call.map_number());
  }
  const std::uint32_t dimension = table->options().dimension;
  // Before each offset is looked at, and before anything is kept for the client.
  const std::size_t floats =
      asked.offsets.size() / sizeof(std::uint32_t) *
      embedding::result_width(static_cast<Reduction>(asked.shape.reduction), dimension);
  if (floats * sizeof(float) > embedding::kResultBytesMax) {
    return call.fail({Code::invalid_argument, 0, 0}, "fewer bags: an answer has at most 256 KiB");
  }
  if (!call.response_fits(floats * sizeof(float))) return call.writable();
  OwnWords own;
  const embedding::ReductionWork work = work_of(asked, own);
  if (const auto fault = embedding::fault_of_work(work, dimension)) {
    return call.fail({Code::invalid_argument, 0, 0}, *fault);
  }
  if (embedding::SmallReduction::fits(*table, work)) {
    return begin_small(call, work, std::move(table));
  }
  ReduceState& state = call.new_state<ReduceState>();
  state.run = std::make_unique<ReductionRun>();
  ReductionRun& run = *state.run;
  run.own = std::move(own);  // words stay where they are
  run.table = std::move(table);
  run.results.resize(floats);
  run.over = floats == 0;
  run.reducer.emplace(*run.table, work, run.results);
  if (const auto begun = run.reducer->begin(); !begun)
    return fail_in_words(call, embedding::error_of(begun.error()));
  return call.again();
}

// --- of several tables ---------------------------------------------------------------------------

/// Reductions of several tables under way.
struct TablesRun {
  std::vector<std::shared_ptr<EmbeddingTable>> tables;
  std::vector<std::uint32_t> own_words;
  std::vector<embedding::TableWork> works;
  std::vector<float> results;
  std::optional<embedding::TablesReducer> reducer;
};

struct TablesState {
  std::unique_ptr<TablesRun> run;
};

/// The table of this number, if this client may read it: of the first one that was asked before.
/// Errors: not_found, not_permitted.
Result<std::shared_ptr<EmbeddingTable>> table_for(Call& call, std::uint32_t number, bool first,
                                                  std::uint32_t named) {
  auto table = call.catalog().find<EmbeddingTable>(number);
  const std::string_view prefix = call.principal().prefix;
  if (!first && !prefix.empty()) {
    const auto entry = call.catalog().find_any(number);
    if (entry != nullptr && !entry->name.starts_with(prefix)) return fail(Code::not_permitted);
  }
  if (table == nullptr || !table->has_name(named)) {
    return fail(Code::not_found, number);
  }
  return table;
}

/// Finds the tables, and what is asked of each. Returns floats of the results, which are at most a
/// little more than may be: it ends there.
TableResult<std::size_t> read_works(Call& call, const embedding_calls::ReduceTables& asked,
                                    TablesRun& run) {
  std::span<const std::uint32_t> data = words_of_message(asked.data, run.own_words);
  if (asked.data.size() % sizeof(std::uint32_t) != 0) {
    return std::unexpected(TableError(Error{Code::invalid_argument, 0, 0}, "no whole words"));
  }
  std::size_t floats = 0;
  const auto reduction = static_cast<Reduction>(asked.shape.reduction);
  for (std::uint32_t i = 0; i < asked.shape.tables; ++i) {
    embedding::TableShape shape;
    std::memcpy(&shape, asked.tables.data() + i * sizeof shape, sizeof shape);
    if (shape.bytes() > data.size_bytes() || (i == 0 && shape.table != 0)) {
      return std::unexpected(
          TableError(Error{Code::invalid_argument, 0, i}, "a TableShape is wrong"));
    }
    auto table = table_for(call, i == 0 ? call.map_number() : shape.table, i == 0, asked.named);
    if (!table) return std::unexpected(table.error());
    const auto take = [&data](std::uint32_t count) {
      const auto taken = data.first(count);
      data = data.subspan(count);
      return taken;
    };
    const auto floats_of = [](std::span<const std::uint32_t> words) {
      return std::span(reinterpret_cast<const float*>(words.data()), words.size());
    };
    embedding::TableWork work{table->get(), {}, {}};
    work.work.reduction = reduction;
    work.work.vector = floats_of(take(shape.vector));
    work.work.bags.offsets = take(shape.bags);
    work.work.bags.ids = take(shape.ids);
    work.work.bags.weights = floats_of(take(shape.weights));
    work.work.bags.grouping = shape.grouping;
    floats +=
        std::size_t{shape.bags} * embedding::result_width(reduction, (*table)->options().dimension);
    run.works.push_back(work);
    run.tables.push_back(*std::move(table));
    if (floats * sizeof(float) > embedding::kResultBytesMax) return floats;
  }
  if (!data.empty()) {
    return std::unexpected(
        TableError(Error{Code::invalid_argument, 0, 0}, "more data than is said"));
  }
  return floats;
}

Next begin_tables(Call& call, const embedding_calls::ReduceTables& asked) {
  auto run = std::make_unique<TablesRun>();
  const auto floats = read_works(call, asked, *run);
  if (!floats) return fail_in_words(call, floats.error());
  if (*floats * sizeof(float) > embedding::kResultBytesMax) {
    return call.fail({Code::invalid_argument, 0, 0}, "fewer bags: an answer has at most 256 KiB");
  }
  if (!call.response_fits(*floats * sizeof(float))) return call.writable();
  if (const auto fault = embedding::fault_of_tables(run->works)) {
    return call.fail({Code::invalid_argument, 0, 0}, *fault);
  }
  run->results.resize(*floats);
  std::span<float> results = run->results;
  for (embedding::TableWork& work : run->works) {
    const std::size_t some =
        work.work.bags.offsets.size() *
        embedding::result_width(work.work.reduction, work.table->options().dimension);
    work.results = results.first(some);
    results = results.subspan(some);
  }
  run->reducer.emplace(run->works);
  if (const auto begun = run->reducer->begin(); !begun) return fail_in_words(call, begun.error());
  call.new_state<TablesState>().run = std::move(run);
  return call.again();
}

}  // namespace

Next reduce_bags(Call& call, const embedding_calls::Reduce& asked) {
  if (call.has_state<SmallReduceState>()) return finish_small(call, asked);
  if (!call.has_state<ReduceState>()) return begin_reduction(call, asked);
  ReductionRun& run = *call.state<ReduceState>().run;
  if (!run.over) {  // of a table that was dropped since as well: it is there as long as this
    const auto stepped = run.reducer->step();
    if (!stepped) return fail_in_words(call, embedding::error_of(stepped.error()));
    if (*stepped) return call.again();
    run.over = true;
    run.table->count(run.reducer->counts());
    run.reducer.reset();  // who takes no answer keeps no groups
  }
  const std::string_view results(reinterpret_cast<const char*>(run.results.data()),
                                 run.results.size() * sizeof(float));
  if (!call.response_fits(results.size())) return call.writable();
  return answer(call, embedding_calls::Reduced{results});
}

Next reduce_bags_of_tables(Call& call, const embedding_calls::ReduceTables& asked) {
  if (!call.has_state<TablesState>()) return begin_tables(call, asked);
  TablesRun& run = *call.state<TablesState>().run;
  if (run.reducer) {
    const auto more = run.reducer->step();
    if (!more) return fail_in_words(call, more.error());
    if (*more) return call.again();
    run.reducer.reset();
  }
  const std::string_view results(reinterpret_cast<const char*>(run.results.data()),
                                 run.results.size() * sizeof(float));
  if (!call.response_fits(results.size())) return call.writable();
  return answer(call, embedding_calls::Reduced{results});
}

}  // namespace espalier::offload
