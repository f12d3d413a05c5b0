// SPDX-License-Identifier: Apache-2.0
// The numbers of the whole node. They are gathered by the node itself, on the helper thread, for
// that looks at every place for epochs and asks every map.
#include <optional>
#include <string>

#include "offload/engine.hpp"

namespace espalier::offload {
namespace {

void start_node_stats(Engine& engine, Request& request) {
  RequestState& state = request.begin_state();
  const NumbersSource& source = engine.services().numbers;
  engine.hand_over(request, [&source, &state] {
    std::optional<std::string> numbers = source.text();
    if (numbers) {
      state.value = std::move(*numbers);
    } else {
      state.result = fail(Code::unsupported);
    }
  });
}

void answer_node_stats(Engine& engine, Request& request) {
  if (!request.state->result) return engine.fail(request, request.state->result.error());
  if (!engine.response_fits(request, request.state->value.size()))
    return engine.on_writable(request);
  engine.answer(request, {}, {request.state->value});
}

const Offload kOffloads[] = {
    {.id = wire::OffloadId::node_stats,
     .name = "node_stats",
     .format = "nothing",
     .summary = "answers the node's numbers, those of its workers, offloads and maps",
     .limits = {},
     .start = start_node_stats,
     .resume = answer_node_stats},
};

}  // namespace

std::span<const Offload> node_offloads() { return kOffloads; }

}  // namespace espalier::offload
