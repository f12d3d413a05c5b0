// SPDX-License-Identifier: Apache-2.0
// What a session asks of the node whatever it keeps: the no-op, by which rings are measured, and
// the end of what it has asked for.
#include "engine/own_calls.hpp"
#include "engine/typed_call.hpp"
#include "wire/session_calls.hpp"

namespace espalier::offload {
namespace {

Next noop(Call& call, const session_calls::Noop&) { return answer(call, wire::Nothing{}); }

Next cancel(Call& call, const session_calls::Cancel& asked) {
  call.cancel(asked.tag);
  return answer(call, wire::Nothing{});
}

const Offload kSessionOffloads[] = {serve<session_calls::Noop, noop>(),
                                    serve<session_calls::Cancel, cancel>()};

}  // namespace

std::span<const Offload> session_offloads() { return kSessionOffloads; }

}  // namespace espalier::offload
