// SPDX-License-Identifier: Apache-2.0
// What stands between the two ends of a connection, as each of them sees it: frames that leave
// through a send buffer, and frames that come. An endpoint makes channels of the provider's
// connections; tests make them of nothing.
//
// Thread: that of the connection's endpoint.
#pragma once

#include <cstddef>
#include <span>

#include "fabric/ofi/send_buffer.hpp"

namespace espalier::fabric::ofi {

/// Who hears what comes through a channel.
class FrameTaker {
 public:
  /// A frame, or anything else that the peer sent for one. It is gone when this returns.
  virtual void take_frame(std::span<const std::byte> frame) = 0;
  /// The channel is broken, and nobody sent a terminate message.
  virtual void lose_channel() = 0;

 protected:
  ~FrameTaker() = default;
};

class Channel : public FrameCarrier {
 public:
  [[nodiscard]] virtual SendBuffer& out() = 0;
  /// From now on `taker` hears, which outlives that.
  virtual void hand_to(FrameTaker& taker) = 0;
  /// Nobody hears any more, and the channel is not theirs. It ends when the peer knows why, which
  /// the send buffer tells as its terminate message; or at once, since it was the peer that said
  /// so.
  virtual void let_go(bool at_once) = 0;

 protected:
  ~Channel() = default;
};

}  // namespace espalier::fabric::ofi
