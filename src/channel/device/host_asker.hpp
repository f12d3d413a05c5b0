// SPDX-License-Identifier: Apache-2.0
// How a device asks its host for what it wants itself: objects to be read, leases, mapping feeds.
// In earnest by rings (host_rings.hpp); a simulated world has messages of its own.
//
// Thread: that of the worker.
#pragma once

#include <functional>
#include <utility>

#include "channel/device/host_answer.hpp"
#include "espalier/error.hpp"
#include "wire/call_codec.hpp"
#include "wire/call_message.hpp"
#include "wire/refusal.hpp"

namespace espalier::device {

class HostAsker {
 public:
  /// Gets the answer, once: what the host said, or no more than a code, if it is gone.
  using OnAnswer = std::function<void(const HostAnswer& answer)>;

  /// The message is copied. Requires: it has no key, and no principal.
  virtual void ask(const wire::CallMessage& message, OnAnswer on_answer) = 0;

 protected:
  ~HostAsker() = default;
};

/// What the host says, as what it is. Errors: what it refused; corrupt.
template <class Reply>
[[nodiscard]] Result<Reply> reply_in(const HostAnswer& answer) {
  if (answer.header.code != 0) {
    return std::unexpected(wire::error_in(answer.header.code, answer.payload));
  }
  const auto reply = wire::read_reply<Reply>(answer.header, answer.payload);
  if (!reply) return fail(Code::corrupt);
  return *reply;
}

/// Asks for a call; `on_reply` gets a Result<Request::Reply>, with errors as reply_in(), once.
template <class Request, class OnReply>
void ask(HostAsker& asker, const Request& request, OnReply on_reply) {
  const wire::RequestMessage<Request> message(request);
  asker.ask(message.get(), [on_reply = std::move(on_reply)](const HostAnswer& answer) {
    on_reply(reply_in<typename Request::Reply>(answer));
  });
}

}  // namespace espalier::device
