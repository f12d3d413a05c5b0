// SPDX-License-Identifier: Apache-2.0
// Typed calls whose answer is one message, over RemoteRequests; the codec (wire/call_codec.hpp)
// writes requests and reads replies.
#pragma once

#include <expected>
#include <utility>

#include "channel/objects.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "wire/call_codec.hpp"

namespace espalier::client {

using channel::reply_in;

/// Sends a call, and waits for its reply. Errors: as RemoteRequests::call; corrupt.
template <class Request>
Result<typename Request::Reply> ask(RemoteRequests& requests, const Request& request) {
  const wire::RequestMessage<Request> message(request);
  const auto answer = requests.call(message.get());
  if (!answer) return std::unexpected(answer.error());
  return reply_in<typename Request::Reply>(*answer);
}

/// The same in two steps. Returns false if the connection is lost.
template <class Request>
bool begin_asking(RemoteRequests& requests, const Request& request) {
  return requests.begin(wire::RequestMessage<Request>(request).get());
}
template <class Request>
Result<typename Request::Reply> finish_asking(RemoteRequests& requests) {
  const auto answer = requests.await();
  if (!answer) return std::unexpected(answer.error().error);
  return reply_in<typename Request::Reply>(*answer);
}

/// The same for a call whose refusal has text for people; `answer` holds the bytes of the reply.
/// Errors: as RemoteRequests::ask; corrupt.
template <class Request>
std::expected<typename Request::Reply, Refusal> ask_in_words(RemoteRequests& requests,
                                                             const Request& request,
                                                             Reply& answer) {
  const wire::RequestMessage<Request> message(request);
  auto answered = requests.ask(message.get());
  if (!answered) return std::unexpected(std::move(answered.error()));
  answer = std::move(*answered);
  const auto reply = wire::read_reply<typename Request::Reply>(answer.header, answer.payload);
  if (!reply) return std::unexpected(Refusal{{Code::corrupt, 0, 0}, {}});
  return *reply;
}

/// The same for a reply that borrows bytes of `answer`, without text. Errors: as ask().
template <class Request>
Result<typename Request::Reply> ask(RemoteRequests& requests, const Request& request,
                                    Reply& answer) {
  auto reply = ask_in_words(requests, request, answer);
  if (!reply) return std::unexpected(reply.error().error);
  return *reply;
}

}  // namespace espalier::client
