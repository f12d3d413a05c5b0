// SPDX-License-Identifier: Apache-2.0
// Handlers of calls that a kind carries out in one step, by the same functions that serve handles
// of this process (channel/reached.hpp).
#pragma once

#include <cstdint>
#include <expected>

#include "catalog/catalog.hpp"
#include "engine/typed_call.hpp"
#include "espalier/table_error.hpp"

namespace espalier::offload {

/// Ends a call with a result.
template <class Reply>
Next answer_or_fail(Call& call, const Result<Reply>& reply) {
  return reply ? answer(call, *reply) : call.fail(reply.error());
}
template <class Reply>
Next answer_or_fail(Call& call, const std::expected<Reply, TableError>& reply) {
  return reply ? answer(call, *reply) : call.fail(reply.error().error, reply.error().words);
}

/// Longest answer of one step. Longer ones are streamed.
inline constexpr std::uint32_t kLongReplyMax = 256 << 10;

template <class Request>
Next obtain_object(Call& call, const Request& asked) {
  const auto object = obtain(call.catalog(), asked);
  if (!object) return call.fail(object.error());
  return answer(call, Request::Reply::of(**object));
}

/// The largest size of a reply that may be long; 0: it is short.
template <class Reply>
[[nodiscard]] consteval std::uint32_t longest_reply() {
  constexpr wire::MessageMeasure kMeasure = wire::measure_of<Reply>();
  static_assert(!kMeasure.has_rest() || kMeasure.limits().payload_bytes_max <= kLongReplyMax,
                "say how long its rest may be: room for it is asked for before anything is done");
  return kMeasure.has_rest() ? kMeasure.limits().payload_bytes_max : 0;
}

template <class T, class Request>
Next execute_on_object(Call& call, const Request& asked) {
  const auto object = call.catalog().find<T>(call.map_number());
  if (object == nullptr) return call.fail({Code::not_found, 0, call.map_number()});
  // Checked before the call is executed, since afterwards it must be answered.
  constexpr std::uint32_t kLongest = longest_reply<typename Request::Reply>();
  if (kLongest != 0 && !call.response_fits(kLongest)) return call.writable();
  return answer_or_fail(call, execute(*object, asked));
}

/// A call that creates or opens an object.
template <class Request>
[[nodiscard]] constexpr Offload serve_opening() {
  static_assert(Request::kCall.opens, "its reply tells an object's number");
  return serve<Request, obtain_object<Request>>();
}
/// A call on a T, which it names by its id.
template <class T, class Request>
[[nodiscard]] constexpr Offload serve_on() {
  static_assert(Request::kCall.object == wire::Names::by_id);
  return serve<Request, execute_on_object<T, Request>>();
}

}  // namespace espalier::offload
