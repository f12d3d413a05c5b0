// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/connected_link.hpp"

#include <rdma/fi_errno.h>

namespace espalier::fabric::ofi {

using wire::ofi::kFrameBytesMax;
using wire::ofi::kFrames;

ConnectedLink::~ConnectedLink() {
  if (end_ && is_up()) fi_shutdown(end_.get(), 0);
}

Result<std::unique_ptr<ConnectedLink>> ConnectedLink::make(Device& device, fi_info& info,
                                                           std::uint64_t number) {
  std::unique_ptr<ConnectedLink> made(
      new ConnectedLink(number, std::make_unique_for_overwrite<std::byte[]>(2 * Outbox::kBytes)));
  auto told = device.tell_memory(made->memory_.get(), 2 * Outbox::kBytes);
  if (!told) return std::unexpected(told.error());
  made->told_ = std::move(*told);
  if (made->told_) made->description_ = fi_mr_desc(made->told_.get());
  auto end = device.make_end(info);
  if (!end) return std::unexpected(end.error());
  made->end_ = std::move(*end);
  for (std::uint32_t i = 0; i != kFrames; ++i) {
    if (!made->make_room(i)) return refused(-FI_EIO);
  }
  return made;
}

Result<void> ConnectedLink::dial(const fi_info& info) {
  const int answer = fi_connect(end_.get(), info.dest_addr, nullptr, 0);
  if (answer != 0) return refused(answer);
  return {};
}

Result<void> ConnectedLink::accept() {
  const int answer = fi_accept(end_.get(), nullptr, 0);
  if (answer != 0) return refused(answer);
  return {};
}

std::byte* ConnectedLink::arriving(std::uint32_t buffer) const {
  return memory_.get() + Outbox::kBytes + std::size_t{buffer} * kFrameBytesMax;
}

bool ConnectedLink::make_room(std::uint32_t buffer) {
  return fi_recv(end_.get(), arriving(buffer), kFrameBytesMax, description_, 0,
                 tag(buffer, false)) == 0;
}

bool ConnectedLink::carry(std::uint32_t buffer, std::span<const std::byte> frame) {
  if (is_down()) return false;
  const auto answer =
      fi_send(end_.get(), frame.data(), frame.size(), description_, 0, tag(buffer, true));
  if (answer != 0 && answer != -FI_EAGAIN) go_down();
  return answer == 0;
}

void ConnectedLink::complete(const Device::Completed& completed) {
  if (!completed.good) return go_down();
  if (leaves(completed.tag)) return out().sent();
  if (!is_up()) come_up();  // who sends has been told, whether this end's event has come or not
  const std::uint32_t buffer = small_of(completed.tag);
  hear({arriving(buffer), completed.bytes});
  if (!make_room(buffer)) go_down();
}

}  // namespace espalier::fabric::ofi
