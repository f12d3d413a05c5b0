// SPDX-License-Identifier: Apache-2.0
// A channel: one end of a connection, with frames that leave through a send buffer, and frames that
// arrive. An endpoint makes channels of the provider's connections; tests fake them.
//
// Thread: that of the connection's endpoint.
#pragma once

#include <cstddef>
#include <span>

#include "fabric/ofi/send_buffer.hpp"

namespace espalier::fabric::ofi {

/// The receiver of a channel's frames.
class FrameTaker {
 public:
  /// Handles a frame, or anything else that the peer sent for one. Invalid when this returns.
  virtual void take_frame(std::span<const std::byte> frame) = 0;
  /// The channel is broken, without a terminate message.
  virtual void lose_channel() = 0;

 protected:
  ~FrameTaker() = default;
};

class Channel : public FrameCarrier {
 public:
  [[nodiscard]] virtual SendBuffer& out() = 0;
  /// Passes frames to `taker` from now on, which outlives that.
  virtual void hand_to(FrameTaker& taker) = 0;
  /// Detaches the receiver, which gives the channel up. The channel closes when the peer has the
  /// send buffer's terminate message; or immediately (`at_once`), if the peer terminated it.
  virtual void let_go(bool at_once) = 0;

 protected:
  ~Channel() = default;
};

}  // namespace espalier::fabric::ofi
