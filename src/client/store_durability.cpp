// SPDX-License-Identifier: Apache-2.0
// The progress of a store's log.
#include "channel/channel.hpp"
#include "channel/objects.hpp"
#include "channel/public_call.hpp"
#include "client/store_impl.hpp"
#include "espalier/map.hpp"
#include "wire/session_calls.hpp"

namespace espalier {
namespace {

Result<DurableState> durable_state_of(client::StoreImpl& store, bool waits) {
  return client::call(store, [&]() -> Result<DurableState> {
    const auto state = channel::log_state(*store.channel(), waits);
    if (!state) return std::unexpected(state.error());
    return DurableState{state->recorded, state->durable, state->run()};
  });
}

}  // namespace

Result<DurableState> Store::durable_state() const { return durable_state_of(*impl_, false); }

Result<DurableState> Store::await_durable() { return durable_state_of(*impl_, true); }

}  // namespace espalier
