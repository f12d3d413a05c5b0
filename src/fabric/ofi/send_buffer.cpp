// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/send_buffer.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"

namespace espalier::fabric::ofi {
namespace {

using wire::ofi::FrameHead;
using wire::ofi::kFrameBytesMax;
using wire::ofi::kFrames;
using wire::ofi::RecordHead;

}  // namespace

std::optional<std::uint32_t> SendBuffer::room(std::uint32_t wanted) {
  if (terminate_sent_) return {};
  if (used_ != 0) {
    const std::uint32_t left = kFrameBytesMax - used_;
    if (left >= wire::ofi::record_bytes(std::min(wanted, SendBuffer::kPartMin))) {
      return std::min<std::uint32_t>(wanted, left - std::uint32_t{sizeof(RecordHead)});
    }
    seal();
    carry_sealed();
  }
  if (!begin_frame(1)) return {};
  return std::min(wanted, wire::ofi::kPayloadMax);
}

std::byte* SendBuffer::add(const RecordHead& head) {
  const std::uint32_t bytes = wire::ofi::record_bytes(head.bytes);
  ESPALIER_ASSERT(used_ != 0 && bytes <= kFrameBytesMax - used_);
  std::byte* const at = buffer_of(opened_ - 1) + used_;
  base::store_plain(at, head);
  std::byte* const payload = at + sizeof head;
  std::fill_n(payload + head.bytes, bytes - sizeof head - head.bytes, std::byte{0});
  used_ += bytes;
  return payload;
}

// Returns false if the peer has no room for more frames than are kept back, or no buffer is free.
bool SendBuffer::begin_frame(std::uint32_t kept_back) {
  if (opened_ - peer_took_ + kept_back >= kFrames || opened_ - sent_ok_ == kFrames) return false;
  ++opened_;
  used_ = sizeof(FrameHead);
  return true;
}

void SendBuffer::seal() {
  const FrameHead head{used_, std::exchange(flags_, std::uint8_t{0}), {}, taken_, 0, done_};
  taken_reported_ = taken_;
  done_reported_ = done_;
  report_due_ = false;
  base::store_plain(buffer_of(opened_ - 1), head);
  bytes_[(opened_ - 1) % kFrames] = used_;
  used_ = 0;
}

void SendBuffer::carry_sealed() {
  const std::uint32_t sealed = opened_ - (used_ != 0 ? 1 : 0);
  for (; open_ && frames_carried_ != sealed; ++frames_carried_) {
    const std::uint32_t buffer = frames_carried_ % kFrames;
    if (!carrier_.carry(buffer, {buffer_of(frames_carried_), bytes_[buffer]})) return;
  }
}

void SendBuffer::flush() {
  // Nothing is kept back from the last frame of all.
  if (terminate_ && !terminate_sent_ && (room(0) || (used_ == 0 && begin_frame(0)))) {
    add(*terminate_);
    terminate_sent_ = true;
  }
  const bool report = open_ && (must_give_back() || must_report());
  if (used_ == 0 && report && !begin_frame(must_give_back() ? 0 : 1)) return carry_sealed();
  if (used_ > sizeof(FrameHead) || (used_ != 0 && (report || flags_ != 0))) seal();
  carry_sealed();
}

void SendBuffer::probe() {
  if (!open_ || (used_ == 0 && !begin_frame(1))) return flush();
  flags_ = wire::ofi::kFlagProbe;
  flush();
}

bool SendBuffer::peer_took(std::uint32_t frames) {
  // Those that have left, not those that are still being written.
  if (frames - peer_took_ > frames_carried_ - peer_took_) return false;
  peer_took_ = frames;
  return true;
}

}  // namespace espalier::fabric::ofi
