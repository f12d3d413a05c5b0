// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/link.hpp"

#include "base/clock.hpp"
#include "fabric/ofi/record_reader.hpp"

namespace espalier::fabric::ofi {
namespace {

// How long a peer may take to hear why.
constexpr std::uint64_t kFarewellNs = 1'000'000'000;

}  // namespace

void* Link::tag(std::uint32_t small, bool leaves) const {
  return reinterpret_cast<void*>(number_ << 8 | (leaves ? kLeaves : 0) | small);
}

void Link::come_up() {
  up_ = true;
  out_.open();
}

void Link::hear(std::span<const std::byte> frame) {
  if (taker_ != nullptr) {
    taker_->take_frame(frame);
  } else {
    hear_farewell(frame);
  }
  // Who sends more than there is room for would keep the others from their turn.
  if (!out_.took()) go_down();
}

// Only whether this end's farewell can leave, or the peer has said its own.
void Link::hear_farewell(std::span<const std::byte> frame) {
  auto reader = RecordReader::open(frame);
  if (!reader || !out_.peer_took(reader->head().taken)) return go_down();
  while (!reader->at_end()) {
    const auto record = reader->next();
    if (!record || record->kind() == wire::ofi::RecordKind::end) return go_down();
  }
}

void Link::let_go(bool at_once) {
  taker_ = nullptr;
  if (at_once || !up_) {
    over_ = true;
  } else {
    leaves_ns_ = base::monotonic_ns() + kFarewellNs;
  }
}

bool Link::settle(std::uint64_t now_ns) {
  if (is_lost()) taker_->lose_line();
  if (taker_ != nullptr) return false;
  if (!over_ && !down_) out_.flush();
  return over_ || down_ || now_ns >= leaves_ns_;
}

}  // namespace espalier::fabric::ofi
