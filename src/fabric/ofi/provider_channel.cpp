// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/provider_channel.hpp"

#include <rdma/fi_errno.h>

#include "base/clock.hpp"
#include "fabric/ofi/frame_reader.hpp"

namespace espalier::fabric::ofi {

using wire::ofi::kFrameBytesMax;
using wire::ofi::kFrames;

namespace {

// How long a peer may take to hear why.
constexpr std::uint64_t kTerminateNs = 1'000'000'000;

}  // namespace

ProviderChannel::~ProviderChannel() {
  if (end_ && is_up()) fi_shutdown(end_.get(), 0);
}

Result<std::unique_ptr<ProviderChannel>> ProviderChannel::make(Device& device, fi_info& info,
                                                               std::uint64_t number) {
  std::unique_ptr<ProviderChannel> made(new ProviderChannel(
      number, std::make_unique_for_overwrite<std::byte[]>(2 * SendBuffer::kBytes)));
  auto registered = device.register_local_memory(made->memory_.get(), 2 * SendBuffer::kBytes);
  if (!registered) return std::unexpected(registered.error());
  made->registration_ = std::move(*registered);
  if (made->registration_) made->description_ = fi_mr_desc(made->registration_.get());
  auto end = device.make_end(info);
  if (!end) return std::unexpected(end.error());
  made->end_ = std::move(*end);
  for (std::uint32_t i = 0; i != kFrames; ++i) {
    if (!made->make_room(i)) return refused(-FI_EIO);
  }
  return made;
}

Result<void> ProviderChannel::dial(const fi_info& info) {
  const int answer = fi_connect(end_.get(), info.dest_addr, nullptr, 0);
  if (answer != 0) return refused(answer);
  return {};
}

Result<void> ProviderChannel::accept() {
  const int answer = fi_accept(end_.get(), nullptr, 0);
  if (answer != 0) return refused(answer);
  return {};
}

void* ProviderChannel::tag(std::uint32_t buffer, bool leaves) const {
  static_assert(kFrames <= kLeaves);
  return reinterpret_cast<void*>(number_ << 8 | (leaves ? kLeaves : 0) | buffer);
}

std::byte* ProviderChannel::arriving(std::uint32_t buffer) const {
  return memory_.get() + SendBuffer::kBytes + std::size_t{buffer} * kFrameBytesMax;
}

bool ProviderChannel::make_room(std::uint32_t buffer) {
  return fi_recv(end_.get(), arriving(buffer), kFrameBytesMax, description_, 0,
                 tag(buffer, false)) == 0;
}

bool ProviderChannel::carry(std::uint32_t buffer, std::span<const std::byte> frame) {
  if (down_) return false;
  const auto answer =
      fi_send(end_.get(), frame.data(), frame.size(), description_, 0, tag(buffer, true));
  if (answer != 0 && answer != -FI_EAGAIN) go_down();
  return answer == 0;
}

void ProviderChannel::complete(const Device::Completed& completed) {
  if (!completed.good) return go_down();
  if ((completed.tag & kLeaves) != 0) return out_.sent();
  if (!up_) come_up();  // the peer's is up, whether this end's event has come or not
  const auto buffer = static_cast<std::uint32_t>(completed.tag & (kLeaves - 1));
  hear({arriving(buffer), completed.bytes});
  if (!make_room(buffer)) go_down();
}

void ProviderChannel::come_up() {
  up_ = true;
  out_.open();
}

// A frame has come.
void ProviderChannel::hear(std::span<const std::byte> frame) {
  if (taker_ != nullptr) {
    taker_->take_frame(frame);
  } else {
    take_terminate(frame);
  }
  // A peer that sends more than there is room for would starve the others.
  if (!out_.took()) go_down();
}

// Only whether this end's terminate message can leave, or the peer has said its own.
void ProviderChannel::take_terminate(std::span<const std::byte> frame) {
  auto reader = FrameReader::open(frame);
  if (!reader || !out_.peer_took(reader->head().taken)) return go_down();
  while (!reader->at_end()) {
    const auto record = reader->next();
    if (!record || record->kind() == wire::ofi::RecordKind::end) return go_down();
  }
}

void ProviderChannel::let_go(bool at_once) {
  taker_ = nullptr;
  if (at_once || !up_) {
    over_ = true;
  } else {
    leaves_ns_ = base::monotonic_ns() + kTerminateNs;
  }
}

bool ProviderChannel::maintain(std::uint64_t now_ns) {
  if (is_lost()) taker_->lose_channel();
  if (taker_ != nullptr) return false;
  if (!over_ && !down_) out_.flush();
  return over_ || down_ || now_ns >= leaves_ns_;
}

}  // namespace espalier::fabric::ofi
