// SPDX-License-Identifier: Apache-2.0
// Handlers with typed requests and replies: the codec parses, rejects and encodes
// (wire/call_codec.hpp).
#pragma once

#include "engine/call.hpp"
#include "engine/registry.hpp"
#include "wire/call_codec.hpp"

namespace espalier::offload {

/// Ends a call with its reply.
template <class Reply>
Next answer(Call& call, const Reply& reply) {
  constexpr wire::MessageMeasure kMeasure = wire::measure_of<Reply>();
  const wire::ReplyMessage<Reply> message(reply);
  if constexpr (kMeasure.fixed_bytes() == 0) {
    if constexpr (!kMeasure.has_rest()) return call.answer(message.header());
    return call.answer(message.header(), {message.more_payload()});
  } else {
    return call.answer(message.header(), {message.payload(), message.more_payload()});
  }
}

template <class Request, Next (*kStep)(Call&, const Request&)>
Next read_and_step(Call& call) {
  const auto request = wire::read_request<Request>(call.bytes());
  if (!request) {
    const auto bytes = static_cast<std::uint32_t>(call.payload().size());
    return call.fail({Code::invalid_argument, 0, bytes});
  }
  if (const auto fault = wire::fault_of(*request)) {
    return call.fail({Code::invalid_argument, 0, fault->detail}, fault->words);
  }
  return kStep(call, *request);
}

/// The row of a call with its handler. `kStep` may be called several times, as Call describes, with
/// the same request.
template <class Request, Next (*kStep)(Call&, const Request&)>
[[nodiscard]] constexpr Offload serve(CallHandler more = {}) {
  more.step = &read_and_step<Request, kStep>;
  return {wire::kRow<Request>, more};
}

}  // namespace espalier::offload
