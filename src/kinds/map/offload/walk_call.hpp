// SPDX-License-Identifier: Apache-2.0
// Calls that walk maps: what their handlers ask for, the map, a walk of it, a version's release,
// memory for items. map_walks.hpp carries them out.
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

/// What handlers of maps have for `executor`.
extern const ExecutorKind kMapWalks;

/// One of its answers in about 64 tells from which leaf it came: those that are read most are worth
/// a table in a switch.
void count_leaf(Request& request, std::uint64_t now_ns);

/// What handlers that kMapWalks carries out have for it, where walks of theirs deliver items.
struct TakesItems {
  bool (*take)(Call&, std::span<const Item>);  ///< false ends the walk
};
template <bool (*kTake)(Call&, std::span<const Item>)>
inline constexpr TakesItems kTakesItems{kTake};

/// As serve(), of a call on maps.
template <class Asked, Next (*kStep)(Call&, const Asked&)>
[[nodiscard]] constexpr Offload serve_map(CallHandler more = {}) {
  if (Asked::kCall.limits.map) {
    more.executor = &kMapWalks;
    more.waits_for_release = true;
  }
  return serve<Asked, kStep>(more);
}

/// What the walk that the last step began has found. What it points to is there until the step
/// returns. Null: this step was not called by a walk. Requires: kMapWalks carries it out.
[[nodiscard]] inline const Completion* ended_walk(const Call& call) {
  return static_cast<const Completion*>(call.from_executor());
}

/// The same of a call whose step is over when its walk has ended: `kWalked` does what is left, and
/// the request is not read again.
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

/// The map that a request works on. Requires: its row says that it names one, and its handler that
/// it is carried out by kMapWalks.
[[nodiscard]] inline ServedMap& map_of(Call& call) {
  return static_cast<ServedMap&>(*call.request().works_on);
}
/// The same, for what only the host can do.
[[nodiscard]] HostMap& host_map_of(Call& call);

/// The walk of a request. Requires: a step of it has made one.
[[nodiscard]] inline espalier::Request& walk_of(Request& request) {
  return request.executor_state.get<espalier::Request>();
}
/// The walk that a step fills in before it ends with begin_walk(); what it points to must live
/// until that has ended.
inline espalier::Request& new_walk(Call& call, Op op) {
  espalier::Request& walk = call.request().executor_state.make<espalier::Request>();
  walk.op = op;
  walk.key = call.key();
  return walk;
}
/// How a step ends that goes on when its walk has ended: ended_walk() is then what it found. The
/// walk is the one that the step has filled in (new_walk); the step then runs inside its epoch.
Next begin_walk(Call& call);
Next begin_walk(Call& call, const memory::HeldVersion* held, const Condition& condition = {});
/// Of a write whose value is there already; it stays until the walk has ended.
Next begin_walk(Call& call, memory::StagedBytes& staged, const Condition& condition = {});
/// Of a put that adds; its value is the sum's bytes, and both stay until the walk has ended.
Next begin_walk(Call& call, tree::Addition& addition);
/// How a step ends that goes on when its map has released a version; it keeps no place of its
/// scheduler until then.
Next wait_for_release(Call& call, std::uint64_t version);
/// Memory for the items of a scan, empty: what an earlier scan left, if there is any.
[[nodiscard]] std::vector<std::byte> items_memory(Call& call);
/// Gives it back, for another scan or to the system.
void keep_memory(Call& call, std::vector<std::byte> items);

}  // namespace espalier::offload
