// SPDX-License-Identifier: Apache-2.0
// A link that is a connection of a provider's (FI_EP_MSG). Frames leave from and arrive in memory
// of its own, so no provider ever touches that of work requests: what is flushed is free at once.
//
// Thread: that of its endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "fabric/ofi/device.hpp"
#include "fabric/ofi/link.hpp"

namespace espalier::fabric::ofi {

class ConnectedLink final : public Link {
 public:
  /// Errors: system.
  static Result<std::unique_ptr<ConnectedLink>> make(Device& device, fi_info& info,
                                                     std::uint64_t number);
  ~ConnectedLink() override;

  /// Begins to connect to the address that `info` is about. Errors: system.
  Result<void> dial(const fi_info& info);
  /// Lets the one in who asked. Errors: system.
  Result<void> accept();

  bool carry(std::uint32_t buffer, std::span<const std::byte> frame) override;

  [[nodiscard]] bool is(const fid* object) const { return end_ && object == end_.base(); }
  /// A frame has come or left, or could not.
  void complete(const Device::Completed& completed);

 private:
  ConnectedLink(std::uint64_t number, std::unique_ptr<std::byte[]> memory)
      : Link(number, memory.get()), memory_(std::move(memory)) {}
  [[nodiscard]] bool make_room(std::uint32_t buffer);
  [[nodiscard]] std::byte* arriving(std::uint32_t buffer) const;

  std::unique_ptr<std::byte[]> memory_;
  Fid<fid_mr> told_;
  Fid<fid_ep> end_;
  void* description_ = nullptr;
};

}  // namespace espalier::fabric::ofi
