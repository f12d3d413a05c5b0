// SPDX-License-Identifier: Apache-2.0
// What a session asks of the node whatever it keeps: the no-op, by which rings are measured, the
// end of what it has asked for, and that it goes on reading the memory.
#include "base/clock.hpp"
#include "catalog/catalog.hpp"
#include "engine/connection.hpp"
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

const Offload kSessionOffloads[] = {serve<session_calls::Noop, noop>(),
                                    serve<session_calls::Cancel, cancel>(),
                                    serve<session_calls::RenewLease, renew_lease>()};

}  // namespace

std::span<const Offload> session_offloads() { return kSessionOffloads; }

}  // namespace espalier::offload
