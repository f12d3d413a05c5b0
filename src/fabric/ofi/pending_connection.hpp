// SPDX-License-Identifier: Apache-2.0
// Somebody who has dialled and is not let in yet: first silent, then asking.
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
  /// Whether it has said what it wants.
  [[nodiscard]] bool asks() const { return asks_; }
  /// It has hung up, or talked nonsense.
  [[nodiscard]] bool is_gone() const { return channel_ == nullptr; }
  [[nodiscard]] const std::vector<std::byte>& data() const { return data_; }
  /// Whether next_request() has told of it.
  bool announced = false;

  /// The channel goes to somebody else. Requires: !is_gone().
  Channel& hand_over();
  /// Sends what the channel owes. Requires: !is_gone().
  void flush() { channel_->out().flush(); }
  /// Says no.
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
