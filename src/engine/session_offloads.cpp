// SPDX-License-Identifier: Apache-2.0
// A session's calls to the node itself: the no-op, by which rings are measured, cancellation,
// renewal of leases, durability of the log, and datagram sessions.
#include <optional>

#include "base/clock.hpp"
#include "base/durable_mark.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "engine/connection.hpp"
#include "engine/datagram_sessions.hpp"
#include "engine/endpoint_side.hpp"
#include "engine/one_sided_host.hpp"
#include "engine/own_calls.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "wire/session_calls.hpp"

namespace espalier::offload {
namespace {

Next noop(Call& call, const session_calls::Noop&) { return answer(call, wire::Nothing{}); }

Next cancel(Call& call, const session_calls::Cancel& asked) {
  call.cancel(asked.tag);
  return answer(call, wire::Nothing{});
}

Next renew_lease(Call& call, const session_calls::RenewLease& asked) {
  OneSidedHost* const host = OneSidedHost::of(call.connection());
  if (host == nullptr) return call.fail({Code::unsupported, 0, 0});
  const auto epoch = host->renew(asked.renewal.lease, asked.renewal.oldest, base::monotonic_ns());
  if (!epoch) return call.fail(epoch.error());
  if (!asked.leaves.empty()) {
    const auto object = call.services().catalog().find_any(asked.object);
    if (object != nullptr) object->object->count_reads(asked.leaves);
  }
  return answer(call, session_calls::Renewed{*epoch});
}

/// The newest record when the call arrived; it does not wait for later ones.
struct AwaitState {
  std::optional<std::uint64_t> recorded;
};

Next await_durable(Call& call, const session_calls::AwaitDurable& asked) {
  catalog::RedoSink* const sink = call.catalog().redo();
  if (sink == nullptr || !call.is_durable()) return call.fail({Code::unsupported, 0, 0});
  AwaitState& state = call.state<AwaitState>();
  if (!state.recorded) state.recorded = sink->handed_over();
  const bool failed = sink->mark().failed();  // before the mark is read
  const std::uint64_t durable = sink->mark().released();
  if ((asked.wants & session_calls::kAwaitDurable) != 0 && durable < *state.recorded) {
    return failed ? call.fail(catalog::kRecordLost) : call.after_release();
  }
  if ((asked.wants & session_calls::kTellRun) == 0) {
    return answer(call, session_calls::LogState{*state.recorded, durable, {}});
  }
  return answer(call, session_calls::LogState::of(*state.recorded, durable, sink->promise().run));
}

Next open_datagrams(Call& call, const session_calls::OpenDatagrams&) {
  auto* const sessions = call.services().parts.find<DatagramSessions>();
  if (sessions == nullptr) return call.fail({Code::unsupported, 0, 0});
  Connection& connection = call.connection();
  // A closing connection has no key any more, and its answer would be dropped.
  if (connection.closing) return call.fail({Code::connection_lost, 0, 0});
  const crypto::SecretBytes* const key = connection.side ? connection.side->key : nullptr;
  const auto offer = sessions->open(connection, call.response_ring(), key);
  if (!offer) return call.fail(offer.error());
  return answer(call, session_calls::DatagramOffered{*offer});
}

const Offload kSessionOffloads[] = {serve<session_calls::Noop, noop>(),
                                    serve<session_calls::Cancel, cancel>(),
                                    serve<session_calls::RenewLease, renew_lease>(),
                                    serve<session_calls::AwaitDurable, await_durable>(),
                                    serve<session_calls::OpenDatagrams, open_datagrams>()};

}  // namespace

std::span<const Offload> session_offloads() { return kSessionOffloads; }

}  // namespace espalier::offload
