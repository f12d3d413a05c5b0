// SPDX-License-Identifier: Apache-2.0
// For tests: a channel with no provider behind it. What is sent is kept, and a test plays the peer.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "fabric/ofi/channel.hpp"
#include "fabric/ofi/frame_reader.hpp"

namespace espalier::fabric::ofi {

class FakeChannel final : public Channel {
 public:
  FakeChannel() : memory_(SendBuffer::kBytes), out_(*this, memory_.data()) { out_.open(); }
  FakeChannel(const FakeChannel&) = delete;
  FakeChannel& operator=(const FakeChannel&) = delete;
  ~FakeChannel() = default;

  SendBuffer& out() override { return out_; }
  void hand_to(FrameTaker& taker) override { taker_ = &taker; }
  void let_go(bool at_once) override {
    taker_ = nullptr;
    ended_now_ = at_once;
  }
  bool carry(std::uint32_t, std::span<const std::byte> frame) override {
    if (refuses) return false;
    frames.emplace_back(frame.begin(), frame.end());
    ++frames_carried_;
    return true;
  }

  /// Buffers of what was sent are free again.
  void leave() {
    for (; left_ != frames_carried_; ++left_) out_.sent();
  }
  /// A frame comes. Returns whether a receiver took it, and had room for it.
  bool bring(std::span<const std::byte> frame) {
    if (taker_ == nullptr) return false;
    taker_->take_frame(frame);
    return out_.took();
  }
  void lose() {
    if (taker_ != nullptr) taker_->lose_channel();
  }
  [[nodiscard]] bool is_let_go() const { return taker_ == nullptr; }
  [[nodiscard]] bool ended_at_once() const { return ended_now_; }
  /// Frames that were sent, ever.
  [[nodiscard]] std::uint32_t frames_carried() const { return frames_carried_; }
  /// Of what was sent, all records.
  [[nodiscard]] std::vector<Record> records() const {
    std::vector<Record> all;
    for (const auto& frame : frames) {
      auto reader = FrameReader::open(frame);
      while (reader && !reader->at_end()) {
        const auto record = reader->next();
        if (!record) break;
        all.push_back(*record);
      }
    }
    return all;
  }

  std::vector<std::vector<std::byte>> frames;  // not taken away yet
  bool refuses = false;                        // to carry

 private:
  std::vector<std::byte> memory_;
  SendBuffer out_;
  FrameTaker* taker_ = nullptr;
  bool ended_now_ = false;
  std::uint32_t frames_carried_ = 0;
  std::uint32_t left_ = 0;
};

/// A frame, written by hand.
class FrameByHand {
 public:
  explicit FrameByHand(std::uint32_t taken = 0, std::uint64_t done = 0, std::uint8_t flags = 0)
      : head_{0, flags, {}, taken, 0, done} {}

  FrameByHand& add(const wire::ofi::RecordHead& head, std::span<const std::byte> payload = {}) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof head + (payload.size() + 7) / 8 * 8);
    base::store_plain(bytes_.data() + at, head);
    std::copy(payload.begin(), payload.end(),
              bytes_.begin() + static_cast<std::ptrdiff_t>(at + sizeof head));
    return *this;
  }
  /// A record of a kind, with the length that its payload has.
  FrameByHand& add(wire::ofi::RecordKind kind, std::span<const std::byte> payload = {}) {
    wire::ofi::RecordHead head{};
    head.kind = static_cast<std::uint8_t>(kind);
    head.bytes = head.message_bytes = static_cast<std::uint32_t>(payload.size());
    return add(head, payload);
  }
  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::vector<std::byte> all = bytes_;
    wire::ofi::FrameHead head = head_;
    head.bytes = static_cast<std::uint32_t>(all.size());
    base::store_plain(all.data(), head);
    return all;
  }

 private:
  wire::ofi::FrameHead head_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(sizeof(wire::ofi::FrameHead));
};

/// A `hello` or `welcome` as it should be.
[[nodiscard]] inline std::vector<std::byte> greeting_bytes(std::span<const std::byte> data = {}) {
  std::vector<std::byte> bytes(sizeof(wire::ofi::Greeting) + data.size());
  base::store_plain(bytes.data(), wire::ofi::Greeting{wire::ofi::kMagic, wire::ofi::kFormat, 0});
  std::copy(data.begin(), data.end(), bytes.data() + sizeof(wire::ofi::Greeting));
  return bytes;
}

}  // namespace espalier::fabric::ofi
