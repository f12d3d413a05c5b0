// SPDX-License-Identifier: Apache-2.0
// The interface of hash map handlers: the map, and a turn in the queue of their scheduler, in which
// a key's bin and record are in cache. hash_queue.hpp executes them.
//
// Thread: that of the scheduler; for the duration of one step.
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

/// The `executor` of handlers of hash maps.
extern const ExecutorKind kHashQueue;

/// What requests on a hash map work on.
struct ServedHash final : WorkedOn {
  explicit ServedHash(std::shared_ptr<hash::HashMap> of) : map(std::move(of)) {}

  [[nodiscard]] bool is_released(std::uint64_t version) const override;

  std::shared_ptr<hash::HashMap> map;  // it may be dropped
};

/// The turn of a request: its key's bin and record are in cache. Valid until the step returns.
struct HashTurn {
  const hash::KeyHash& hash;  ///< of the key
  /// Of a get: the item found, which stays valid until the step returns.
  const hash_calls::ItemFound* found = nullptr;
  /// Of a get: the thread whose exposed epoch keeps it valid.
  const hash::HashThread* thread = nullptr;
};

/// The turn that called the step. Null: something else called it. Requires: kHashQueue executes it.
[[nodiscard]] inline const HashTurn* turn_of(const Call& call) {
  return static_cast<const HashTurn*>(call.from_executor());
}
/// The map that a request works on. Requires: likewise.
[[nodiscard]] inline const std::shared_ptr<hash::HashMap>& hash_of(Call& call) {
  return static_cast<ServedHash&>(*call.request().works_on).map;
}

/// Requests a turn for the key, in which the queue calls the request's step. `reads`: it is a get;
/// else the thread exposes nothing then, and is in no call. Cost: the key's hash.
void await_turn(Executor& queue, Request& request, bool reads);

/// Ends a step that continues in its turn, in this turn of the scheduler or in the next; turns are
/// taken in the order of these calls.
inline Next await_read(Call& call) {
  await_turn(call.executor(kHashQueue), call.request(), true);
  return call.handed_over();
}
inline Next await_write(Call& call) {
  await_turn(call.executor(kHashQueue), call.request(), false);
  return call.handed_over();
}
/// Keeps the item of a get valid, for any thread. Errors: std::bad_alloc.
[[nodiscard]] base::EpochPin pin_found(const hash::HashMap& map, const HashTurn& turn);

/// As serve(), of a call that names a hash map by its number, whatever else it names.
template <class Asked, Next (*kStep)(Call&, const Asked&)>
[[nodiscard]] constexpr Offload serve_on_hash(CallHandler more = {}) {
  static_assert(Asked::kCall.object == wire::Names::by_id ||
                Asked::kCall.object == wire::Names::all);
  more.executor = &kHashQueue;
  return serve<Asked, kStep>(more);
}

}  // namespace espalier::offload
