// SPDX-License-Identifier: Apache-2.0
// The link to a host as a device's offloads know it, beyond what the scheduler does.
//
// Thread: that of the scheduler.
#pragma once

#include <cstdint>
#include <string>

#include "engine/host_link.hpp"
#include "wire/message.hpp"

namespace espalier::device {

class RelayLink : public offload::HostLink {
 public:
  /// Whether the host is to do a read that could wait for its turn here; counts those. It has room
  /// while few posts wait for it.
  [[nodiscard]] virtual bool forwards() = 0;
  /// Which connection to the host this is: what was numbered by one means nothing to another.
  [[nodiscard]] virtual std::uint64_t connection() const = 0;
  /// Has the host do what nobody waits for, such as to let go of what it numbered for the device,
  /// if the connection is still this one.
  virtual void notify(std::uint64_t connection, wire::OffloadId id, std::string payload) = 0;
};

}  // namespace espalier::device
