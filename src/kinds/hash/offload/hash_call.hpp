// SPDX-License-Identifier: Apache-2.0
// Calls on hash maps: what their handlers ask for, the map and a turn in the queue of their
// scheduler, in which a key's bin and record are brought near. hash_queue.hpp carries them out.
//
// Thread: that of the scheduler; for the time of one step.
#pragma once

#include <memory>
#include <utility>

#include "engine/typed_call.hpp"
#include "kinds/hash/calls.hpp"

namespace espalier::base {
class EpochPin;
}
namespace espalier::hash {
class HashThread;
class KeyHash;
}  // namespace espalier::hash

namespace espalier::offload {

/// What handlers of hash maps have for `executor`.
extern const ExecutorKind kHashQueue;

/// What requests on a hash map work on.
struct ServedHash final : WorkedOn {
  explicit ServedHash(std::shared_ptr<hash::HashMap> of) : map(std::move(of)) {}

  [[nodiscard]] bool is_released(std::uint64_t version) const override;

  std::shared_ptr<hash::HashMap> map;  // it may be dropped
};

/// A request's turn: its key's bin and record are near. It is there until the step returns.
struct HashTurn {
  const hash::KeyHash& hash;  ///< of the key
  /// Of a get: what it has found, which stays where it is until the step returns.
  const hash_calls::ItemFound* found = nullptr;
  /// Of a get: the thread whose exposed epoch sees to that.
  const hash::HashThread* thread = nullptr;
};

/// The turn by which the step was called. Null: it was called by something else.
/// Requires: kHashQueue carries it out.
[[nodiscard]] inline const HashTurn* turn_of(const Call& call) {
  return static_cast<const HashTurn*>(call.from_executor());
}
/// The map that a request works on. Requires: likewise.
[[nodiscard]] inline const std::shared_ptr<hash::HashMap>& hash_of(Call& call) {
  return static_cast<ServedHash&>(*call.request().works_on).map;
}

/// The turn of a request's key, of which it has the queue call the request's step. `reads`: it is a
/// get; else the thread exposes nothing then, and is in no call. Cost: the key's hash.
void await_turn(Executor& queue, Request& request, bool reads);

/// How a step ends that goes on when its turn comes, in this turn of the scheduler or in the next;
/// requests have their turns in the order in which they came to this.
inline Next await_read(Call& call) {
  await_turn(call.executor(kHashQueue), call.request(), true);
  return call.handed_over();
}
inline Next await_write(Call& call) {
  await_turn(call.executor(kHashQueue), call.request(), false);
  return call.handed_over();
}
/// Keeps what a get has found where it is, for any thread. Errors: std::bad_alloc.
[[nodiscard]] base::EpochPin pin_found(const hash::HashMap& map, const HashTurn& turn);

/// As serve(), of a call on a hash map that it names by its number, whatever else it concerns.
template <class Asked, Next (*kStep)(Call&, const Asked&)>
[[nodiscard]] constexpr Offload serve_on_hash(CallHandler more = {}) {
  static_assert(Asked::kCall.object == wire::Names::by_id ||
                Asked::kCall.object == wire::Names::all);
  more.executor = &kHashQueue;
  return serve<Asked, kStep>(more);
}

}  // namespace espalier::offload
