// SPDX-License-Identifier: Apache-2.0
// The send buffer of a connection: records, gathered into frames, as many frames as the peer has
// room for; each frame also carries this end's flow-control credits.
//
// The last frame that the peer has room for is reserved for returning credits, and used only if
// that is worth it. So two ends that have both sent all they may cannot deadlock: each then has
// more credits to return than it needs for that, and the frame that returns them can leave.
//
// Invariants
// I1. opened_ - sent_ok_ <= kFrames: a buffer is written only after what was in it has left.
// I2. opened_ - peer_took_ <= kFrames: no frame is sent that the peer has no room for.
//
// Thread: that of the connection's endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/types.hpp"
#include "wire/fabric_ofi.hpp"

namespace espalier::fabric::ofi {

/// Where frames leave.
class FrameCarrier {
 public:
  /// Sends what lies in a buffer of the send buffer; it stays so until SendBuffer::sent(). Returns
  /// false if that cannot be now.
  virtual bool carry(std::uint32_t buffer, std::span<const std::byte> frame) = 0;

 protected:
  ~FrameCarrier() = default;
};

class SendBuffer {
 public:
  static constexpr std::size_t kBytes = std::size_t{wire::ofi::kFrames} * wire::ofi::kFrameBytesMax;
  /// A part of a long message of less than this waits for the next frame, or for more room.
  static constexpr std::uint32_t kPartMin = 1024;

  /// `buffers`: kBytes, the send buffer's own as long as it lives.
  SendBuffer(FrameCarrier& carrier, std::byte* buffers) : carrier_(carrier), buffers_(buffers) {}
  SendBuffer(const SendBuffer&) = delete;
  SendBuffer& operator=(const SendBuffer&) = delete;

  /// How much payload, up to `wanted`, a record can carry that is added now. Nothing: there is no
  /// room for a record. Parts are multiples of 8 bytes, and not small ones.
  std::optional<std::uint32_t> room(std::uint32_t wanted);
  /// Adds a record; the caller writes its payload where this points. Requires: room() for
  /// head.bytes, and nothing in between.
  std::byte* add(const wire::ofi::RecordHead& head);

  /// Sends what has been added, and what the peer must know.
  void flush();
  /// The same, with a keepalive probe.
  void probe();
  /// Sends the terminate message as soon as possible; what is added later is not sent.
  void send_terminate(const wire::ofi::RecordHead& last) { terminate_ = last; }
  /// Whether that has left.
  [[nodiscard]] bool terminate_sent() const { return terminate_sent_; }

  /// The carrier is ready for frames.
  void open() { open_ = true; }
  /// What carry() was given has left its buffer, in the order of those calls.
  void sent() { ++sent_ok_; }
  /// A frame of the peer was taken, and there is room for another. Returns false if the peer sent
  /// it without credit.
  [[nodiscard]] bool took() { return ++taken_ - taken_reported_ <= wire::ofi::kFrames; }
  /// The peer wants a frame soon.
  void report_soon() { report_due_ = true; }
  /// So many bytes of the peer's requests are done, since the beginning.
  void did(std::uint64_t bytes) { done_ = bytes; }
  /// The peer has taken so many frames, since the beginning. Returns false if it cannot have.
  [[nodiscard]] bool peer_took(std::uint32_t frames);

 private:
  [[nodiscard]] bool begin_frame(std::uint32_t kept_back);
  void seal();
  void carry_sealed();
  [[nodiscard]] bool must_give_back() const {
    return taken_ - taken_reported_ >= wire::ofi::kFrames / 4;
  }
  [[nodiscard]] bool must_report() const {
    return report_due_ || done_ - done_reported_ >= wire::ofi::kWindowBytes / 4;
  }
  [[nodiscard]] std::byte* buffer_of(std::uint32_t frame) const {
    return buffers_ + std::size_t{frame % wire::ofi::kFrames} * wire::ofi::kFrameBytesMax;
  }

  FrameCarrier& carrier_;
  std::byte* buffers_;
  bool open_ = false;
  std::uint32_t used_ = 0;            // bytes of the frame that is being written; 0: there is none
  std::uint8_t flags_ = 0;            // of that frame
  std::uint32_t opened_ = 0;          // frames, since the beginning
  std::uint32_t frames_carried_ = 0;  // those that the carrier has been given
  std::uint32_t sent_ok_ = 0;         // those whose buffers are free again
  std::uint32_t peer_took_ = 0;
  std::uint32_t bytes_[wire::ofi::kFrames] = {};  // of sealed frames
  std::uint32_t taken_ = 0;
  std::uint32_t taken_reported_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t done_reported_ = 0;
  bool report_due_ = false;
  std::optional<wire::ofi::RecordHead> terminate_;
  bool terminate_sent_ = false;
};

}  // namespace espalier::fabric::ofi
