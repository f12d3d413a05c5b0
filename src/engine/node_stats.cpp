// SPDX-License-Identifier: Apache-2.0
// The node's counters. The node gathers them, on a helper thread, since that scans all epochs.
#include <optional>
#include <string>
#include <utility>

#include "engine/own_calls.hpp"
#include "engine/principal.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "wire/session_calls.hpp"

namespace espalier::offload {
namespace {

struct NodeStatsState {
  bool asked = false;
  std::optional<std::string> numbers;  // none: no source is set
};

Next node_stats(Call& call, const session_calls::NodeStats&) {
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
  return answer(call, session_calls::NodeNumbers{*state.numbers});
}

const Offload kNodeOffloads[] = {serve<session_calls::NodeStats, node_stats>()};

}  // namespace

std::span<const Offload> node_offloads() { return kNodeOffloads; }

}  // namespace espalier::offload
