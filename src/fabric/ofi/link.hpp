// SPDX-License-Identifier: Apache-2.0
// A line that is a connection of a provider's. Frames leave from and arrive in memory of its own,
// so no provider ever touches that of work requests: what is flushed is free at once.
//
// A link that nobody has any more stays until its farewell has reached the peer: until that hangs
// up, or for a while. To close a socket behind bytes that nobody has read would take back what was
// sent last.
//
// Thread: that of its endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fabric/ofi/device.hpp"
#include "fabric/ofi/line.hpp"

namespace espalier::fabric::ofi {

class Link final : public Line {
 public:
  /// `number`: its own among all links of the endpoint, ever, below 2^56; it comes back as tags.
  /// Errors: system.
  static Result<std::unique_ptr<Link>> make(Device& device, fi_info& info, std::uint64_t number);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  /// Begins to connect to the address that `info` is about. Errors: system.
  Result<void> dial(const fi_info& info);
  /// Lets the one in who asked. Errors: system.
  Result<void> accept();

  Outbox& out() override { return out_; }
  void hand_to(FrameTaker& taker) override { taker_ = &taker; }
  void let_go(bool at_once) override;
  bool carry(std::uint32_t buffer, std::span<const std::byte> frame) override;

  // For the endpoint.

  [[nodiscard]] static std::uint64_t number_of(std::uint64_t tag) { return tag >> 8; }
  [[nodiscard]] bool is(const fid* object) const { return end_ && object == end_.base(); }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// The connection is there.
  void come_up();
  [[nodiscard]] bool is_up() const { return up_; }
  /// A frame has come or left, or could not.
  void complete(const Device::Completed& completed);
  /// It is broken; whoever hears is told by settle(), behind all that has come.
  void go_down() { down_ = true; }
  /// Whether settle() has that to tell.
  [[nodiscard]] bool is_lost() const { return down_ && taker_ != nullptr; }
  /// What comes last in a turn. Returns whether the link is over.
  [[nodiscard]] bool settle(std::uint64_t now_ns);
  /// When settle() has something to do although nothing came; 0: never.
  [[nodiscard]] std::uint64_t due_ns() const { return leaves_ns_; }

 private:
  Link(std::uint64_t number, std::unique_ptr<std::byte[]> memory);
  [[nodiscard]] bool make_room(std::uint32_t buffer);
  void hear_farewell(std::span<const std::byte> frame);
  [[nodiscard]] std::byte* arriving(std::uint32_t buffer) const;
  [[nodiscard]] void* context(std::uint32_t buffer, bool leaves) const;

  std::uint64_t number_;
  std::unique_ptr<std::byte[]> memory_;
  Fid<fid_mr> told_;
  Fid<fid_ep> end_;
  void* description_ = nullptr;
  Outbox out_;
  FrameTaker* taker_ = nullptr;
  bool up_ = false;
  bool down_ = false;
  bool over_ = false;
  std::uint64_t leaves_ns_ = 0;  // when it ends, if the peer does not hang up
};

}  // namespace espalier::fabric::ofi
