// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/offload/loaded_run.hpp"

#include <utility>

#include "engine/connection.hpp"
#include "engine/typed_call.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/loaded_pipeline.hpp"
#include "kinds/table/offload/loaded_pipelines.hpp"

namespace espalier::offload {

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

Next keep_pipeline(Call& call, LoadedPipeline pipeline) {
  const auto number = LoadedPipelines::of(call.connection()).keep(std::move(pipeline));
  if (!number) {
    const bool many = number.error().code == Code::too_many_participants;
    return call.fail(number.error(),
                     many ? "this session keeps 256 pipelines already: drop one that is not needed"
                          : "the node has no memory for another pipeline of this session");
  }
  return answer(call, table_calls::Loaded{*number});
}

}  // namespace espalier::offload
