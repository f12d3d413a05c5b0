// SPDX-License-Identifier: Apache-2.0
// The numbers of the whole node. They are gathered by the node itself, on the helper thread, for
// that looks at every place for epochs and asks every map.
#include <optional>
#include <string>

#include "offload/engine.hpp"

namespace espalier::offload {
namespace {

void start_node_stats(Engine& engine, InFlight& r) {
  Steps& steps = r.begin_steps();
  const NumbersSource& source = engine.services().numbers;
  engine.hand_over(r, [&source, &steps] {
    std::optional<std::string> numbers = source.tell();
    if (numbers) {
      steps.value = std::move(*numbers);
    } else {
      steps.result = fail(Code::unsupported);
    }
  });
}

void answer_node_stats(Engine& engine, InFlight& r) {
  if (!r.steps->result) return engine.fail(r, r.steps->result.error());
  if (!engine.response_fits(r, r.steps->value.size())) return engine.when_drained(r);
  engine.answer(r, {}, {r.steps->value});
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
