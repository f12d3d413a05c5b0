// SPDX-License-Identifier: Apache-2.0
// A line that a provider carries: what all have in common, however their frames travel.
//
// A link that nobody has any more stays until its farewell has reached the peer: until that hangs
// up, or for a while. To close a socket behind bytes that nobody has read would take back what was
// sent last.
//
// Thread: that of its endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/ofi/line.hpp"

namespace espalier::fabric::ofi {

class Link : public Line {
 public:
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  virtual ~Link() = default;

  Outbox& out() override { return out_; }
  void hand_to(FrameTaker& taker) override { taker_ = &taker; }
  void let_go(bool at_once) override;

  // For who makes links and lets them end.

  /// What completions of its frames are told with, beside `small`, which is below 128.
  [[nodiscard]] void* tag(std::uint32_t small, bool leaves) const;
  [[nodiscard]] static std::uint64_t number_of(std::uint64_t tag) { return tag >> 8; }
  [[nodiscard]] static std::uint32_t small_of(std::uint64_t tag) { return tag & (kLeaves - 1); }
  [[nodiscard]] static bool leaves(std::uint64_t tag) { return (tag & kLeaves) != 0; }

  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] bool is_up() const { return up_; }
  /// The peer is there.
  void come_up();
  /// It is broken; whoever hears is told by settle(), behind all that has come.
  void go_down() { down_ = true; }
  [[nodiscard]] bool is_down() const { return down_; }
  /// Whether settle() has that to tell.
  [[nodiscard]] bool is_lost() const { return down_ && taker_ != nullptr; }
  /// What comes last in a turn. Returns whether the link is over.
  [[nodiscard]] virtual bool settle(std::uint64_t now_ns);
  /// When settle() has something to do although nothing came; 0: never.
  [[nodiscard]] virtual std::uint64_t due_ns() const { return leaves_ns_; }

 protected:
  /// `number`: its own among all links of the endpoint, ever, below 2^56. `frames`: Outbox::kBytes.
  Link(std::uint64_t number, std::byte* frames) : number_(number), out_(*this, frames) {}
  /// A frame has come.
  void hear(std::span<const std::byte> frame);

 private:
  static constexpr std::uint32_t kLeaves = 0x80;

  void hear_farewell(std::span<const std::byte> frame);

  std::uint64_t number_;
  Outbox out_;
  FrameTaker* taker_ = nullptr;
  bool up_ = false;
  bool down_ = false;
  bool over_ = false;
  std::uint64_t leaves_ns_ = 0;  // when it ends, if the peer does not hang up
};

}  // namespace espalier::fabric::ofi
