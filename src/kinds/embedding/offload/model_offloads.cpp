// SPDX-License-Identifier: Apache-2.0
// Offloads of ranking models. A helper parses text, as the paper's accelerator hands it to a core
// of the CPU [RAMBDA §IV-C]; rows are reduced in steps, between which other requests proceed;
// networks run on a helper, for all requests of a batch together (dense_batches.hpp).
#include "kinds/embedding/offload/model_offloads.hpp"

#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "catalog/apply_record.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_effect.hpp"
#include "catalog/redo_record.hpp"
#include "engine/object_call.hpp"
#include "engine/principal.hpp"
#include "engine/redo_target.hpp"
#include "engine/typed_call.hpp"
#include "kinds/embedding/model/inference.hpp"
#include "kinds/embedding/model/model_calls.hpp"
#include "kinds/embedding/model/model_redo.hpp"
#include "kinds/embedding/model/ranking.hpp"
#include "kinds/embedding/model/ranking_redo.hpp"
#include "kinds/embedding/offload/dense_batches.hpp"
#include "kinds/embedding/offload/model_copy.hpp"
#include "kinds/embedding/offload/pooled_rows.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

using embedding::Inference;
using embedding::RankingObject;

/// Limit on words that are parsed in a turn.
constexpr std::size_t kReadBytesMax = 64 << 10;
/// Interval at which a request that waits for another's helper checks again.
constexpr std::uint64_t kLookAgainNs = 20'000;

Next fail_as(Call& call, const TableError& error) { return call.fail(error.error, error.words); }

// --- making --------------------------------------------------------------------------------------

/// A model that a helper makes. If its client goes, it is reverted.
struct ModelCreateRun {
  embedding::RankingMaking making;
  std::optional<TableResult<model_calls::Opened>> done{};
};

struct ModelCreateState {
  std::unique_ptr<ModelCreateRun> run;
};

/// All readers of the model read these tables by it: so the client that makes it must have the
/// right.
bool may_name_tables(Call& call, std::string_view file) {
  const std::string_view prefix = call.principal().prefix;
  const auto plan = embedding::read_model_plan(file);
  if (prefix.empty() || !plan) return true;
  for (const std::string& table : plan->tables) {
    if (!table.starts_with(prefix)) return false;
  }
  return true;
}

JobStep make_some(ModelCreateRun& run, StepContext& context) {
  do {
    const auto more = run.making.step();
    if (!more) {
      run.done.emplace(std::unexpected(more.error()));
      return JobStep::done;
    }
    if (!*more) {
      run.done.emplace(model_calls::Opened::of(*run.making.made()));
      return JobStep::done;
    }
  } while (!run.making.waits() && !context.should_return());
  if (run.making.waits()) std::this_thread::yield();
  return JobStep::again;
}

Next create_model(Call& call, const model_calls::Create& asked) {
  if (call.has_state<ModelCreateState>()) {
    const ModelCreateRun& run = *call.state<ModelCreateState>().run;
    if (!run.done) return call.fail({Code::busy, 0, 0});  // the job was cancelled before it began
    return answer_or_fail(call, *run.done);
  }
  if (!may_name_tables(call, asked.file)) return call.fail({Code::not_permitted, 0, 0});
  ModelCreateState& state = call.new_state<ModelCreateState>();
  catalog::Catalog& catalog = call.catalog();
  state.run.reset(new ModelCreateRun{{catalog, catalog.store()->pool, asked.name, asked.file}});
  return call.helper_steps(
      [&run = *state.run](StepContext& context) { return make_some(run, context); });
}

// --- ranking -------------------------------------------------------------------------------------

/// Lives as long as the request and its batch.
struct CountedInference {
  explicit CountedInference(std::shared_ptr<const RankingObject> model)
      : inference(std::move(model)) {}

  PooledRows rows;
  Inference inference;
};

/// A request in progress.
struct InferRun {
  enum class Stage : std::uint8_t { parsing, reducing, waiting };

  ~InferRun() {
    if (runs && batch != nullptr) batch->leave();
  }

  std::shared_ptr<Inference> inference;
  PooledRows* rows = nullptr;  // its quota, which lives with it
  Stage stage = Stage::parsing;
  TableResult<void> parsed{};
  std::shared_ptr<DenseBatch> batch;
  bool runs = false;  // the helper of this request ranks the batch
};

struct InferState {
  std::unique_ptr<InferRun> run;
};

Next answer_ranks(Call& call, const InferRun& run) {
  const auto& ranks = run.inference->ranks();
  const std::string_view bytes(reinterpret_cast<const char*>(ranks.data()),
                               ranks.size() * sizeof(float));
  if (!call.response_fits(bytes.size())) return call.writable();
  return answer(call, model_calls::Inferred{bytes});
}

Next run_batch(Call& call, InferRun& run) {
  call.scheduler_part<DenseBatches>().close(run.batch);
  run.runs = true;
  return call.helper_steps([batch = run.batch](StepContext& context) {
    while (batch->step()) {
      if (context.should_return()) return JobStep::again;
    }
    return JobStep::done;
  });
}

Next wait_for_batch(Call& call, InferRun& run) {
  const std::uint64_t now = base::monotonic_ns();
  switch (run.batch->state()) {
    case DenseBatch::State::ranked: return answer_ranks(call, run);
    case DenseBatch::State::left: return run_batch(call, run);
    case DenseBatch::State::running: return call.at(now + kLookAgainNs);
    case DenseBatch::State::gathering: break;
  }
  return run.batch->is_ready(now) ? run_batch(call, run) : call.at(run.batch->due_ns());
}

Next reduce_rows(Call& call, InferRun& run) {
  const auto more = run.inference->step();
  if (!more) return fail_as(call, more.error());
  if (*more) return call.again();
  run.batch = call.scheduler_part<DenseBatches>().join(run.inference, base::monotonic_ns());
  run.stage = InferRun::Stage::waiting;
  return wait_for_batch(call, run);
}

Next open_inference(Call& call, InferRun& run) {
  if (!run.parsed) return fail_as(call, run.parsed.error());
  const std::uint64_t bytes = std::uint64_t{run.inference->queries()} *
                              run.inference->model()->shape().outputs * sizeof(float);
  if (bytes > model_calls::Inferred::kRanksBytesMax) {
    return call.fail({Code::invalid_argument, 0, 0},
                     "fewer queries: an answer has at most 256 KiB");
  }
  if (!run.rows->take(run.inference->pooled_bytes(), call.account(),
                      call.scheduler_part<PooledMemory>())) {
    return call.fail({Code::out_of_memory, 0, 0},
                     "fewer queries at a time: their reduced rows come to more than 64 MiB of one "
                     "client, or 256 MiB of a worker");
  }
  if (const auto opened = run.inference->open(call.catalog()); !opened) {
    return fail_as(call, opened.error());
  }
  run.stage = InferRun::Stage::reducing;
  return call.again();
}

Next begin_inference(Call& call, const model_calls::Infer& asked) {
  auto model = call.catalog().find<RankingObject>(call.map_number());
  if (model == nullptr) return call.fail({Code::not_found, 0, call.map_number()});
  InferState& state = call.new_state<InferState>();
  state.run = std::make_unique<InferRun>();
  InferRun& run = *state.run;
  const auto counted = std::make_shared<CountedInference>(std::move(model));
  run.inference = {counted, &counted->inference};
  run.rows = &counted->rows;
  if (asked.shape.text != 0 || asked.queries.size() > kReadBytesMax) {
    return call.helper(
        [&run, asked] { run.parsed = run.inference->read(asked.shape, asked.queries); });
  }
  run.parsed = run.inference->read(asked.shape, asked.queries);
  return open_inference(call, run);
}

Next infer_ranks(Call& call, const model_calls::Infer& asked) {
  if (!call.has_state<InferState>()) return begin_inference(call, asked);
  InferRun& run = *call.state<InferState>().run;
  switch (run.stage) {
    case InferRun::Stage::parsing: return open_inference(call, run);
    case InferRun::Stage::reducing: return reduce_rows(call, run);
    case InferRun::Stage::waiting: break;
  }
  return wait_for_batch(call, run);
}

const Offload kModelOffloads[] = {
    serve<model_calls::Create, create_model>(),
    serve_opening<model_calls::Open>(),
    serve<model_calls::Infer, infer_ranks>(),
};

Result<void> restore_a_model(RedoTarget& target, const catalog::CreatedObject& created) {
  const auto made = embedding::restore_ranking_model(target.services().catalog(), created);
  return made ? Result<void>() : std::unexpected(made.error());
}

Result<void> apply_to_a_model(RedoTarget& target, const catalog::RedoHead& head,
                              std::string_view record) {
  return catalog::apply_to<RankingObject>(
      target.services().catalog(), head.object, [&](RankingObject& model) {
        return embedding::apply_weights(model, target.services().store.pool, record);
      });
}

Result<void> describe_weights(std::string_view record, const TakeEffect& take) {
  const auto redo = embedding::read_weights_redo(record);
  if (!redo) return std::unexpected(redo.error());
  const catalog::RedoNumber numbers[] = {{"first_float", redo->first}, {"floats", redo->floats}};
  take({"weights", std::nullopt, numbers});
  return {};
}

}  // namespace

const KindRedo kModelRedo{.restore = restore_a_model,
                          .apply = apply_to_a_model,
                          .describe = describe_weights,
                          .copy = copy_a_model};

std::span<const Offload> model_offloads() { return kModelOffloads; }

}  // namespace espalier::offload
