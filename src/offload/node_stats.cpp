// SPDX-License-Identifier: Apache-2.0
// The numbers of the whole node. They are gathered by the node itself, on the helper thread, for
// that looks at every place for epochs and asks every map.
#include <optional>
#include <string>
#include <utility>

#include "offload/call.hpp"

namespace espalier::offload {
namespace {

struct NodeStatsState {
  bool asked = false;
  std::optional<std::string> numbers;  // none: nobody tells them
};

Next node_stats(Call& call) {
  NodeStatsState& state = call.state<NodeStatsState>();
  if (!std::exchange(state.asked, true)) {
    const NumbersSource& source = call.services().numbers;
    const PrincipalView who = call.principal();
    const auto whom = who.role == Right::admin && who.prefix.empty()
                          ? NumbersSource::For::administrators
                          : NumbersSource::For::all;
    return call.helper([&source, &state, whom] { state.numbers = source.text(whom); });
  }
  if (!state.numbers) return call.fail({Code::unsupported, 0, 0});
  if (!call.response_fits(state.numbers->size())) return call.writable();
  return call.answer({}, {*state.numbers});
}

const Offload kNodeOffloads[] = {
    {.id = wire::OffloadId::node_stats,
     .name = "node_stats",
     .format = "nothing",
     .summary = "answers the node's numbers, those of its workers, offloads, maps and tables",
     .right = Right::read,
     .limits = {},
     .object = Names::all,
     .step = node_stats},
};

}  // namespace

std::span<const Offload> node_offloads() { return kNodeOffloads; }

}  // namespace espalier::offload
