// SPDX-License-Identifier: Apache-2.0
// Offloads on embedding tables: making and opening them, their numbers, appends and groupings by
// helpers, and replacements. Reductions are in reduction_calls.cpp.
#include "kinds/embedding/offload/embedding_offloads.hpp"

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "engine/object_call.hpp"
#include "engine/one_sided_fields.hpp"
#include "engine/one_sided_host.hpp"
#include "engine/typed_call.hpp"
#include "kinds/embedding/execute.hpp"
#include "kinds/embedding/grouping.hpp"
#include "kinds/embedding/offload/message_words.hpp"
#include "kinds/embedding/offload/reduction_calls.hpp"

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

// By a helper, for memory may have to be reclaimed.
Next create_embedding(Call& call, const embedding_calls::Create& asked) {
  EmbeddingCreateState& state = call.state<EmbeddingCreateState>();
  if (state.done) return answer_or_fail(call, *state.done);
  if (const auto words = call.why_not(wire::durability_of(asked.durability))) {
    return call.fail({Code::unsupported, 0, 0}, *words);
  }
  return call.helper([&state, &catalog = call.catalog(), asked] {
    const auto made = obtain(catalog, asked);
    if (made) {
      state.done.emplace(embedding_calls::Create::Reply::of(**made));
    } else {
      state.done.emplace(std::unexpected(made.error()));
    }
  });
}

// The renames are counted before: one that comes between makes the answer an old one.
Next open_embedding(Call& call, const embedding_calls::Open& asked) {
  const std::uint32_t since = call.catalog().renames();
  const auto table = obtain(call.catalog(), asked);
  if (!table) return call.fail(table.error());
  return answer(call, embedding_calls::Opened::of(**table, since));
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
  return table.options().dimension > kFloatsMax && table.may_have_sums();
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
  if (table == nullptr || !table->has_name(asked.named)) {
    return fail_no_embedding(call);
  }
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
  if (table == nullptr || !table->has_name(asked.named)) {
    return fail_no_embedding(call);
  }
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

Next open_embedding_reads(Call& call, const embedding_calls::OpenReads&) {
  const auto table = embedding_of(call);
  if (table == nullptr) return fail_no_embedding(call);
  OneSidedHost* const host = OneSidedHost::of(call.connection());
  if (host == nullptr) return call.fail({Code::unsupported, 0, 0});
  const embedding::EmbeddingPlace place = table->place();
  return answer_one_sided(call, *host, embedding_calls::kEmbeddingField, base::bytes_of(place));
}

const Offload kEmbeddingOffloads[] = {
    serve<embedding_calls::Create, create_embedding>(),
    serve<embedding_calls::Open, open_embedding>(),
    serve_on<EmbeddingTable, embedding_calls::Info>(),
    serve<embedding_calls::Append, append_rows>(),
    serve<embedding_calls::Replace, replace_row>(),
    serve<embedding_calls::Reduce, reduce_bags>(),
    serve<embedding_calls::ReduceTables, reduce_bags_of_tables>(),
    serve<embedding_calls::Group, group_rows>(),
    serve<embedding_calls::Renumber, renumber_ids>(),
    serve<embedding_calls::OpenReads, open_embedding_reads>(),
};

}  // namespace

std::span<const Offload> embedding_offloads() { return kEmbeddingOffloads; }

}  // namespace espalier::offload
