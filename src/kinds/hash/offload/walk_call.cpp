// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/offload/walk_call.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "kinds/hash/hash_walk.hpp"
#include "kinds/hash/walk_items.hpp"

namespace espalier::offload {
namespace {

/// A piece on its way. Helpers fill it.
struct HashWalkState {
  std::shared_ptr<hash::HashMap> map;
  std::optional<hash::HashWalk> walk;  // goes before the map
  std::string items;
  std::uint32_t count = 0;
  bool whole = false;
  std::optional<Error> error;
};

/// Bins that are gone over between two looks at the clock.
constexpr int kBinsTogether = 16;

JobStep gather(HashWalkState& state, std::string_view after, StepContext& context) {
  const auto lease = hash::HashThreadLease::take(state.map->store().threads);
  if (!lease) {
    state.error = lease.error();
    return JobStep::done;
  }
  if (!state.walk) {
    state.walk.emplace(*state.map, after);
    state.items.reserve(hash::kWalkBytesMax);  // so that nothing throws with an item in hand
  }
  const auto take = [&state](const hash::WalkedItem& item) {
    hash::append_item(state.items, item.key, item.value, item.version);
    ++state.count;
    return state.items.size() < hash::kWalkBytes;
  };
  for (int bins = 0; !state.whole; ++bins) {
    if (bins == kBinsTogether) {
      if (context.should_return()) return JobStep::again;
      bins = 0;
    }
    state.whole =
        state.walk->at_end() || state.map->is_dropped() || !state.walk->step(**lease, take);
  }
  return JobStep::done;
}

}  // namespace

Next hash_walk(Call& call, const hash_calls::Walk& asked) {
  HashWalkState* state = call.find_state<HashWalkState>();
  if (state == nullptr) {
    auto map = call.catalog().find<hash::HashMap>(call.map_number());
    if (map == nullptr) return call.fail({Code::not_found, 0, call.map_number()});
    state = &call.new_state<HashWalkState>();
    state->map = std::move(map);
  }
  if (state->error) return call.fail(*state->error);
  if (!state->whole) {
    return call.helper_steps_when_possible([state, after = asked.after](StepContext& context) {
      return gather(*state, after, context);
    });
  }
  if (state->map->is_dropped()) return call.fail({Code::not_found, 0, call.map_number()});
  if (!call.response_fits(state->items.size())) return call.writable();
  return answer(call, hash_calls::Walked{!state->walk->at_end() && state->count != 0, state->count,
                                         state->items});
}

}  // namespace espalier::offload
