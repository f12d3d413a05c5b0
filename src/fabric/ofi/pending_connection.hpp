// SPDX-License-Identifier: Apache-2.0
// A connection that is not accepted yet: first without, then with its greeting.
//
// Thread: that of its endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/ofi/channel.hpp"

namespace espalier::fabric::ofi {

class PendingConnection final : public FrameTaker {
 public:
  PendingConnection(std::uint64_t id, std::string peer, Channel& channel);
  PendingConnection(const PendingConnection&) = delete;
  PendingConnection& operator=(const PendingConnection&) = delete;
  ~PendingConnection();

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const std::string& peer() const { return peer_; }
  /// Whether its greeting has come.
  [[nodiscard]] bool asks() const { return asks_; }
  /// It has closed the connection, or violated the protocol.
  [[nodiscard]] bool is_gone() const { return channel_ == nullptr; }
  [[nodiscard]] const std::vector<std::byte>& data() const { return data_; }
  /// Whether next_request() has returned it.
  bool announced = false;

  /// Releases the channel to another receiver. Requires: !is_gone().
  Channel& hand_over();
  /// Sends what is pending in the channel. Requires: !is_gone().
  void flush() { channel_->out().flush(); }
  /// Rejects it.
  void reject();

  void take_frame(std::span<const std::byte> frame) override;
  void lose_channel() override;

 private:
  std::uint64_t id_;
  std::string peer_;
  Channel* channel_;
  bool asks_ = false;
  std::vector<std::byte> data_;
};

}  // namespace espalier::fabric::ofi
