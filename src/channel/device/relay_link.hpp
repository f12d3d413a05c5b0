// SPDX-License-Identifier: Apache-2.0
// The link to a host as a device's offloads know it, beyond what the scheduler does.
//
// Thread: that of the scheduler.
#pragma once

#include <cstdint>

#include "engine/host_link.hpp"

namespace espalier::device {

class RelayLink : public offload::HostLink {
 public:
  /// Whether the host is to do a read that could wait for its turn here; counts those. It has room
  /// while few posts wait for it.
  [[nodiscard]] virtual bool forwards() = 0;
  /// Which connection to the host this is: what was numbered by one means nothing to another.
  [[nodiscard]] virtual std::uint64_t connection() const = 0;
  /// Lets the host's snapshot of this number go, if the connection is still the one it is of.
  virtual void close_snapshot(std::uint64_t connection, std::uint64_t number) = 0;
  /// Has the host, which loaded it just now for the device, forget a pipeline.
  virtual void drop_pipeline(std::uint64_t number) = 0;
};

}  // namespace espalier::device
