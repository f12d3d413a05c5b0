// SPDX-License-Identifier: Apache-2.0
// Offloads on embedding tables: making and opening them, their numbers, appends and groupings by
// helpers, replacements, and reductions. A reduction takes its first rows' lines into the cache in
// its first step, so that all that the turn took from its clients is on its way before the first is
// summed; then 64 rows a turn, so that others go on [RAMBDA §IV-C].
#include "kinds/embedding/offload/embedding_offloads.hpp"

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/object_call.hpp"
#include "engine/typed_call.hpp"
#include "kinds/embedding/execute.hpp"
#include "kinds/embedding/grouping.hpp"
#include "kinds/embedding/reducer.hpp"

namespace espalier::offload {
namespace {

using embedding::EmbeddingTable;

std::shared_ptr<EmbeddingTable> embedding_of(Call& call) {
  return call.catalog().find<EmbeddingTable>(call.map_number());
}

Next fail_no_embedding(Call& call) { return call.fail({Code::not_found, 0, call.map_number()}); }

/// What a helper made of a table that is to be.
struct EmbeddingCreateState {
  std::optional<Result<embedding_calls::Create::Reply>> done;
};

// Rows have no versions: what is stored is seen. By a helper, for memory may have to be reclaimed.
Next create_embedding(Call& call, const embedding_calls::Create& asked) {
  if (call.is_durable()) {
    return call.fail({Code::unsupported, 0, 0},
                     "a node with a data folder has no embedding tables yet: readers would see "
                     "rows that a crash can lose");
  }
  EmbeddingCreateState& state = call.state<EmbeddingCreateState>();
  if (state.done) return answer_or_fail(call, *state.done);
  return call.helper([&state, &catalog = call.catalog(), asked] {
    const auto made = obtain(catalog, asked);
    if (made) {
      state.done.emplace(embedding_calls::Create::Reply::of(**made));
    } else {
      state.done.emplace(std::unexpected(made.error()));
    }
  });
}

// --- appending -----------------------------------------------------------------------------------

/// What a helper made of an append.
struct EmbeddingAppendState {
  std::shared_ptr<EmbeddingTable> table;
  std::optional<TableResult<embedding_calls::Appended>> done;
};

Next append_rows(Call& call, const embedding_calls::Append& asked) {
  EmbeddingAppendState& state = call.state<EmbeddingAppendState>();
  if (state.done) return answer_or_fail(call, *state.done);
  state.table = embedding_of(call);
  if (state.table == nullptr) return fail_no_embedding(call);
  return call.helper(
      [&state, asked] { state.done.emplace(embedding_calls::execute(*state.table, asked)); });
}

// --- replacing -----------------------------------------------------------------------------------

/// What a helper made of a replacement.
struct EmbeddingReplaceState {
  std::shared_ptr<EmbeddingTable> table;
  std::optional<TableResult<embedding_calls::Replaced>> done;
};

/// Whether a replacement may have more sums to compute than a turn has time for.
bool is_long_replacement(const EmbeddingTable& table) {
  constexpr std::uint32_t kFloatsMax = 64;  // 247 sums of 256 bytes: some 10 us
  return table.options().dimension > kFloatsMax && table.memo() != nullptr;
}

Next replace_row(Call& call, const embedding_calls::Replace& asked) {
  EmbeddingReplaceState& state = call.state<EmbeddingReplaceState>();
  if (state.done) return answer_or_fail(call, *state.done);
  state.table = embedding_of(call);
  if (state.table == nullptr) return fail_no_embedding(call);
  if (!is_long_replacement(*state.table)) {
    return answer_or_fail(call, embedding_calls::execute(*state.table, asked));
  }
  return call.helper(
      [&state, asked] { state.done.emplace(embedding_calls::execute(*state.table, asked)); });
}

// --- reducing ------------------------------------------------------------------------------------

/// Words of a message, where they lie, or a copy of them if that is no place for words.
template <class T>
std::span<const T> words_of_message(std::string_view bytes, std::vector<T>& copy) {
  if (bytes.empty()) return {};
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) == 0) {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  copy.resize(bytes.size() / sizeof(T));
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy;
}

/// A reduction under way. It has memory of its own, being more than a request has room for.
struct ReductionRun {
  std::shared_ptr<EmbeddingTable> table;
  std::vector<std::uint32_t> own_ids, own_offsets;
  std::vector<float> own_weights, own_vector;
  std::vector<float> results;
  std::optional<embedding::Reducer> reducer;
  bool over = false;
};

struct ReduceState {
  std::unique_ptr<ReductionRun> run;
};

embedding::ReductionWork work_of(const embedding_calls::Reduce& asked, ReductionRun& run) {
  embedding::ReductionWork work;
  work.reduction = static_cast<Reduction>(asked.shape.reduction);
  work.bags.ids = words_of_message(asked.ids, run.own_ids);
  work.bags.offsets = words_of_message(asked.offsets, run.own_offsets);
  work.bags.weights = words_of_message(asked.weights, run.own_weights);
  work.bags.grouping = asked.shape.grouping;
  work.vector = words_of_message(asked.vector, run.own_vector);
  return work;
}

Next fail_wrong_id(Call& call, const embedding::WrongId& wrong) {
  const TableError error = embedding::error_of(wrong);
  return call.fail(error.error, error.words);
}

Next begin_reduction(Call& call, const embedding_calls::Reduce& asked) {
  auto table = embedding_of(call);
  if (table == nullptr) return fail_no_embedding(call);
  const std::uint32_t dimension = table->options().dimension;
  // Before each offset is looked at, and before anything is kept for the client.
  const std::size_t floats =
      asked.offsets.size() / sizeof(std::uint32_t) *
      embedding::result_width(static_cast<Reduction>(asked.shape.reduction), dimension);
  if (floats * sizeof(float) > embedding::kResultBytesMax) {
    return call.fail({Code::invalid_argument, 0, 0}, "fewer bags: an answer has at most 256 KiB");
  }
  if (!call.response_fits(floats * sizeof(float))) return call.writable();
  ReduceState& state = call.new_state<ReduceState>();
  state.run = std::make_unique<ReductionRun>();
  ReductionRun& run = *state.run;
  const embedding::ReductionWork work = work_of(asked, run);
  if (const auto fault = embedding::fault_of_work(work, dimension)) {
    return call.fail({Code::invalid_argument, 0, 0}, *fault);
  }
  run.table = std::move(table);
  run.results.resize(floats);
  run.over = floats == 0;
  run.reducer.emplace(*run.table, work, run.results);
  if (const auto begun = run.reducer->begin(); !begun) return fail_wrong_id(call, begun.error());
  return call.again();
}

Next reduce_bags(Call& call, const embedding_calls::Reduce& asked) {
  if (!call.has_state<ReduceState>()) return begin_reduction(call, asked);
  ReductionRun& run = *call.state<ReduceState>().run;
  if (run.table->dropped()) return fail_no_embedding(call);
  if (!run.over) {
    const auto stepped = run.reducer->step();
    if (!stepped) return fail_wrong_id(call, stepped.error());
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

// --- groups --------------------------------------------------------------------------------------

/// A grouping that a helper makes, some pieces a step. If its client goes, it is undone.
struct GroupingRun {
  std::shared_ptr<EmbeddingTable> table;
  std::vector<std::uint32_t> own_rows;
  std::optional<embedding::Grouping> grouping;
  std::optional<TableResult<embedding_calls::Grouped>> done;
};

struct GroupingState {
  std::unique_ptr<GroupingRun> run;
};

JobStep group_some(GroupingRun& run, StepContext& context) {
  do {
    const auto more = run.grouping->step();
    if (!more) {
      run.done.emplace(std::unexpected(more.error()));
      return JobStep::done;
    }
    if (!*more) {
      run.done.emplace(embedding_calls::Grouped{run.grouping->number()});
      return JobStep::done;
    }
  } while (!context.should_return());
  return JobStep::again;
}

Next group_rows(Call& call, const embedding_calls::Group& asked) {
  if (call.has_state<GroupingState>()) {
    const GroupingRun& run = *call.state<GroupingState>().run;
    if (!run.done) return call.fail({Code::busy, 0, 0});  // the job was cancelled before it began
    return answer_or_fail(call, *run.done);
  }
  auto table = embedding_of(call);
  if (table == nullptr) return fail_no_embedding(call);
  GroupingState& state = call.new_state<GroupingState>();
  state.run = std::make_unique<GroupingRun>();
  GroupingRun& run = *state.run;
  run.table = std::move(table);
  const RowGroups groups{
      {reinterpret_cast<const std::uint8_t*>(asked.sizes.data()), asked.sizes.size()},
      words_of_message(asked.rows, run.own_rows)};
  run.grouping.emplace(*run.table, groups);
  return call.helper_steps([&run](StepContext& context) { return group_some(run, context); });
}

Next renumber_ids(Call& call, const embedding_calls::Renumber& asked) {
  const auto table = embedding_of(call);
  if (table == nullptr) return fail_no_embedding(call);
  if (!call.response_fits(asked.ids.size())) return call.writable();
  std::vector<std::uint32_t> ids(asked.ids.size() / sizeof(std::uint32_t));
  std::memcpy(ids.data(), asked.ids.data(), ids.size() * sizeof(std::uint32_t));
  const auto grouping = embedding_calls::renumber(*table, ids, asked.ids.size() % 4 == 0);
  if (!grouping)
    return answer_or_fail(
        call, TableResult<embedding_calls::Renumbered>(std::unexpected(grouping.error())));
  const std::string_view bytes(reinterpret_cast<const char*>(ids.data()),
                               ids.size() * sizeof(std::uint32_t));
  return answer(call, embedding_calls::Renumbered{*grouping, bytes});
}

const Offload kEmbeddingOffloads[] = {
    serve<embedding_calls::Create, create_embedding>(),
    serve_opening<embedding_calls::Open>(),
    serve_on<EmbeddingTable, embedding_calls::Info>(),
    serve<embedding_calls::Append, append_rows>(),
    serve<embedding_calls::Replace, replace_row>(),
    serve<embedding_calls::Reduce, reduce_bags>(),
    serve<embedding_calls::Group, group_rows>(),
    serve<embedding_calls::Renumber, renumber_ids>(),
};

}  // namespace

std::span<const Offload> embedding_offloads() { return kEmbeddingOffloads; }

}  // namespace espalier::offload
