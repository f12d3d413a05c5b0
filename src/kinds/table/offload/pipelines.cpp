// SPDX-License-Identifier: Apache-2.0
// Offloads that keep pipelines for a session, to be run by their numbers.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "catalog/catalog.hpp"
#include "engine/connection.hpp"
#include "engine/payload_reader.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/offload/loaded_pipelines.hpp"
#include "kinds/table/offload/loaded_run.hpp"
#include "kinds/table/offload/table_offloads.hpp"
#include "kinds/table/offload/table_services.hpp"
#include "kinds/table/pipeline.hpp"
#include "kinds/table/table.hpp"

namespace espalier::offload {
namespace {

/// What a helper made of a pipeline that is to be kept.
struct LoadState {
  std::shared_ptr<table::Table> table;
  std::optional<table::PipelineResult<table::PipelineMessage>> done;
};

// Checks everything now, regular expressions too, so that loading reports all mistakes.
table::PipelineResult<table::PipelineMessage> checked(std::span<const std::byte> bytes,
                                                      const table::Table& table,
                                                      table::RegexCompiler& regexes) {
  auto message = table::decode_pipeline(bytes);
  if (!message) return message;
  auto pipeline = table::check_pipeline(*message, table.schema());
  if (!pipeline) return std::unexpected(std::move(pipeline.error()));
  if (auto compiled = table::compile_regexes(*pipeline, regexes); !compiled) {
    return std::unexpected(std::move(compiled.error()));
  }
  return message;
}

Next load(Call& call, const table_calls::LoadPipeline& asked) {
  LoadState& state = call.state<LoadState>();
  if (!state.table) {
    state.table = call.services().catalog().find<table::Table>(asked.table);
    if (!state.table) return call.fail({Code::not_found, 0, asked.table});
    return call.helper([&state, bytes = bytes_of_text(asked.pipeline),
                        &regexes = call.services().part<TableServices>().regexes] {
      state.done.emplace(checked(bytes, *state.table, regexes));
    });
  }
  auto& done = *state.done;
  if (!done) return call.fail({Code::invalid_argument, 0, 0}, done.error().message());
  return keep_pipeline(call, {state.table->id(), *std::move(done)});
}

// Those that are not there were dropped before.
Next drop(Call& call, const table_calls::DropPipelines& asked) {
  std::uint64_t dropped = 0;
  for (std::string_view left = asked.numbers; left.size() >= sizeof(std::uint64_t);
       left.remove_prefix(sizeof(std::uint64_t))) {
    std::uint64_t number = 0;
    std::memcpy(&number, left.data(), sizeof number);
    dropped += LoadedPipelines::of(call.connection()).drop(number) ? 1 : 0;
  }
  return answer(call, table_calls::Dropped{dropped});
}

const Offload kPipelineOffloads[] = {
    serve<table_calls::LoadPipeline, load>(),
    serve<table_calls::DropPipelines, drop>(),
};

}  // namespace

std::span<const Offload> pipeline_offloads() { return kPipelineOffloads; }

}  // namespace espalier::offload
