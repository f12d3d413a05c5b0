// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/device/hashes_at_device.hpp"

#include <memory>

#include "base/assert.hpp"
#include "channel/device/host_posts.hpp"
#include "channel/device/relay.hpp"
#include "engine/call.hpp"
#include "engine/connection.hpp"
#include "engine/long_answer.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/hash/calls.hpp"
#include "kinds/hash/device/host_hashes.hpp"

namespace espalier::device {
namespace {

using offload::Call;
using offload::Next;
using offload::Offload;

/// A get that is served here. The reader keeps it until it is over, even if the client is gone.
struct HashGetAtDevice {
  std::shared_ptr<DeviceHashGet> get;  // null: to be begun again
};

// If the client did not open the map here, only the host knows its name and the client's right.
Next begin_hash_get(Call& call) {
  const auto& parts = call.services().part<NodeHostHashes>();
  HostHashes& hashes = *parts.of_scheduler[call.shard()];
  const auto asked = wire::read_request<hash_calls::Get>(call.bytes());
  const bool here = asked && hashes.reads(asked->map) &&
                    call.connection().access.knows_that_it_may_use(asked->map);
  if (!here) return begin_relay(call);  // the host reports what is wrong with a request
  auto* state = call.find_state<HashGetAtDevice>();
  if (state == nullptr) state = &call.new_state<HashGetAtDevice>();
  state->get = hashes.begin(asked->map, asked->key);
  return call.again();
}

// Helpers of the host copy long values. A request that waits for room in the response ring holds no
// value meanwhile, because no quota counts it: it is read again then.
Next hash_get_at_device(Call& call) {
  if (is_relayed(call)) return relay(call);
  auto* const state = call.find_state<HashGetAtDevice>();
  if (state == nullptr || state->get == nullptr) return begin_hash_get(call);
  const DeviceHashGet& get = *state->get;
  if (!get.is_over()) return call.again();
  if (!get.is_answered()) return begin_relay(call);
  const hash_calls::ItemFound found = get.found();
  if (found.value.size() > offload::kLongValueBytes) return begin_relay(call);
  if (!call.response_fits(found.value.size())) {
    state->get.reset();
    return call.writable();
  }
  return offload::answer(call, found);
}

}  // namespace

void serve_hashes_at_device(Offload& made, const Offload&) {
  ESPALIER_ASSERT(made.id == hash_calls::Get::kCall.id);
  made.step = hash_get_at_device;
}

}  // namespace espalier::device
