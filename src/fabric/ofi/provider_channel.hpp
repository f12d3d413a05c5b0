// SPDX-License-Identifier: Apache-2.0
// A channel over a connection of a provider (FI_EP_MSG). Frames leave from and arrive in memory of
// its own, so no provider ever touches that of work requests: the memory of a flushed request is
// free immediately.
//
// A link that was given up stays until its terminate message has reached the peer: until the peer
// closes, or for a while. Closing a socket with unread bytes would discard what was sent last.
//
// Thread: that of its endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "fabric/ofi/channel.hpp"
#include "fabric/ofi/device.hpp"

namespace espalier::fabric::ofi {

class ProviderChannel final : public Channel {
 public:
  /// `number`: its own among all links of the endpoint, ever, below 2^56. Errors: system.
  static Result<std::unique_ptr<ProviderChannel>> make(Device& device, fi_info& info,
                                                       std::uint64_t number);
  ProviderChannel(const ProviderChannel&) = delete;
  ProviderChannel& operator=(const ProviderChannel&) = delete;
  ~ProviderChannel();

  /// Begins to connect to the address that `info` is about. Errors: system.
  Result<void> dial(const fi_info& info);
  /// Accepts the connection. Errors: system.
  Result<void> accept();

  SendBuffer& out() override { return out_; }
  void hand_to(FrameTaker& taker) override { taker_ = &taker; }
  void let_go(bool at_once) override;
  bool carry(std::uint32_t buffer, std::span<const std::byte> frame) override;

  // For Connections.

  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// Of the link that a completion is about.
  [[nodiscard]] static std::uint64_t number_of(std::uint64_t tag) { return tag >> 8; }
  [[nodiscard]] bool is(const fid* object) const { return end_ && object == end_.base(); }
  /// A frame has come or left, or could not.
  void complete(const Device::Completed& completed);

  [[nodiscard]] bool is_up() const { return up_; }
  /// The connection is established.
  void come_up();
  /// It is broken; maintain() reports that to the receiver, behind all that has come.
  void go_down() { down_ = true; }
  /// Whether maintain() has that to report.
  [[nodiscard]] bool is_lost() const { return down_ && taker_ != nullptr; }
  /// Periodic maintenance, at the end of a turn. Returns whether the link is over.
  [[nodiscard]] bool maintain(std::uint64_t now_ns);
  /// The next deadline of maintain(); 0: none.
  [[nodiscard]] std::uint64_t due_ns() const { return leaves_ns_; }

 private:
  // Marks the tags of completed sends; buffers are below that.
  static constexpr std::uint32_t kLeaves = 0x80;

  ProviderChannel(std::uint64_t number, std::unique_ptr<std::byte[]> memory)
      : number_(number), memory_(std::move(memory)), out_(*this, memory_.get()) {}
  [[nodiscard]] void* tag(std::uint32_t buffer, bool leaves) const;
  [[nodiscard]] bool make_room(std::uint32_t buffer);
  [[nodiscard]] std::byte* arriving(std::uint32_t buffer) const;
  void hear(std::span<const std::byte> frame);
  void take_terminate(std::span<const std::byte> frame);

  std::uint64_t number_;
  std::unique_ptr<std::byte[]> memory_;  // frames that leave, then those that arrive
  Fid<fid_mr> registration_;
  Fid<fid_ep> end_;
  void* description_ = nullptr;
  SendBuffer out_;
  FrameTaker* taker_ = nullptr;
  bool up_ = false;
  bool down_ = false;
  bool over_ = false;
  std::uint64_t leaves_ns_ = 0;  // when it ends, if the peer does not hang up
};

}  // namespace espalier::fabric::ofi
