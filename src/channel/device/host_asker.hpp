// SPDX-License-Identifier: Apache-2.0
// Interface for a device's own calls to its host: opening objects for reads, leases, mapping feeds.
// Implemented over rings (host_rings.hpp), and by messages of simulated worlds.
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
  /// Called once with the answer: the host's, or only a code if the host is gone.
  using OnAnswer = std::function<void(const HostAnswer& answer)>;

  /// Copies the message. Requires: it has no key, and no principal.
  virtual void ask(const wire::CallMessage& message, OnAnswer on_answer) = 0;

 protected:
  ~HostAsker() = default;
};

/// Parses the host's answer. Errors: those that the host returned; corrupt.
template <class Reply>
[[nodiscard]] Result<Reply> reply_in(const HostAnswer& answer) {
  if (answer.header.code != 0) {
    return std::unexpected(wire::error_in(answer.header.code, answer.payload));
  }
  const auto reply = wire::read_reply<Reply>(answer.header, answer.payload);
  if (!reply) return fail(Code::corrupt);
  return *reply;
}

/// Issues a call; `on_reply` gets a Result<Request::Reply> once, with errors as reply_in().
template <class Request, class OnReply>
void ask(HostAsker& asker, const Request& request, OnReply on_reply) {
  const wire::RequestMessage<Request> message(request);
  asker.ask(message.get(), [on_reply = std::move(on_reply)](const HostAnswer& answer) {
    on_reply(reply_in<typename Request::Reply>(answer));
  });
}

}  // namespace espalier::device
