// SPDX-License-Identifier: Apache-2.0
#include "channel/embedded/embedded_channel.hpp"

#include "base/assert.hpp"

namespace espalier::client {

// Never called: objects of this process need no messages.
std::expected<channel::Answer, channel::Refusal> EmbeddedChannel::ask(
    const wire::CallMessage&, std::optional<channel::NodeNumber>) {
  ESPALIER_ASSERT(false);
  return std::unexpected(channel::Refusal({Code::unsupported, 0, 0}));
}

std::expected<void, channel::Refusal> EmbeddedChannel::make(const wire::CallMessage&,
                                                            const wire::CallMessage&,
                                                            const channel::TakeAnswer&) {
  ESPALIER_ASSERT(false);
  return std::unexpected(channel::Refusal({Code::unsupported, 0, 0}));
}

}  // namespace espalier::client
