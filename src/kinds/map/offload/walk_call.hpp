// SPDX-License-Identifier: Apache-2.0
// Calls that walk maps: what their handlers use: the map, a walk of it, the wait for a version's
// release, memory for items. map_walks.hpp implements them.
//
// Thread: that of the scheduler; for the time of one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/typed_call.hpp"
#include "espalier/condition.hpp"
#include "espalier/types.hpp"
#include "kinds/map/offload/served_map.hpp"

namespace espalier::memory {
struct HeldVersion;
class StagedBytes;
}  // namespace espalier::memory
namespace espalier::tree {
struct Addition;
}

namespace espalier::offload {

class HostMap;

/// The `executor` of handlers of maps.
extern const ExecutorKind kMapWalks;

/// Samples about one in 64 answers, by leaf: leaves that are read most are worth a table in a
/// switch.
void count_leaf(Request& request, std::uint64_t now_ns);

/// For handlers with kMapWalks whose walks deliver items.
struct TakesItems {
  bool (*take)(Call&, std::span<const Item>);  ///< false ends the walk
};
template <bool (*kTake)(Call&, std::span<const Item>)>
inline constexpr TakesItems kTakesItems{kTake};

/// As serve(), for a call on maps.
template <class Asked, Next (*kStep)(Call&, const Asked&)>
[[nodiscard]] constexpr Offload serve_map(CallHandler more = {}) {
  if (Asked::kCall.limits.map) {
    more.executor = &kMapWalks;
    more.waits_for_release = true;
  }
  return serve<Asked, kStep>(more);
}

/// The result of the walk that the last step began. What it points to is valid until the step
/// returns. Null: the step was not called by a walk. Requires: kMapWalks is the executor.
[[nodiscard]] inline const Completion* ended_walk(const Call& call) {
  return static_cast<const Completion*>(call.from_executor());
}

/// The same for a call that ends with its walk: `kWalked` completes it, and the request is not
/// parsed again.
template <class Asked, Next (*kStep)(Call&, const Asked&),
          Next (*kWalked)(Call&, const Completion&)>
[[nodiscard]] constexpr Offload serve_walk(CallHandler more = {}) {
  Offload made = serve_map<Asked, kStep>(more);
  made.step = [](Call& call) {
    const Completion* const found = ended_walk(call);
    return found != nullptr ? kWalked(call, *found) : read_and_step<Asked, kStep>(call);
  };
  return made;
}

/// The map that a request works on. Requires: its row names a map, and kMapWalks is the executor.
[[nodiscard]] inline ServedMap& map_of(Call& call) {
  return static_cast<ServedMap&>(*call.request().works_on);
}
/// The same, for calls that only the host can serve.
[[nodiscard]] HostMap& host_map_of(Call& call);

/// The walk of a request. Requires: a step of it has created one.
[[nodiscard]] inline espalier::Request& walk_of(Request& request) {
  return request.executor_state.get<espalier::Request>();
}
/// The walk that a step fills in before it ends with begin_walk(); what it points to must live
/// until the walk has ended.
inline espalier::Request& new_walk(Call& call, Op op) {
  espalier::Request& walk = call.request().executor_state.make<espalier::Request>();
  walk.op = op;
  walk.key = call.key();
  return walk;
}
/// Ends a step that continues when its walk has ended: ended_walk() is then its result. The walk is
/// the one filled in (new_walk); the step then runs inside its epoch.
Next begin_walk(Call& call);
Next begin_walk(Call& call, const memory::HeldVersion* held, const Condition& condition = {});
/// For a write whose value is staged; the value must live until the walk has ended.
Next begin_walk(Call& call, memory::StagedBytes& staged, const Condition& condition = {});
/// For a put that adds; its value is the sum's bytes, and both must live until the walk has ended.
Next begin_walk(Call& call, tree::Addition& addition);
/// Ends a step that continues when its map has released a version; the request keeps no slot of its
/// scheduler until then.
Next wait_for_release(Call& call, std::uint64_t version);
/// An empty buffer for the items of a scan, reused from an earlier scan if possible.
[[nodiscard]] std::vector<std::byte> items_memory(Call& call);
/// Returns it, for another scan or to the system.
void keep_memory(Call& call, std::vector<std::byte> items);

}  // namespace espalier::offload
