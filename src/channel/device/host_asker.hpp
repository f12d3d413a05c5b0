// SPDX-License-Identifier: Apache-2.0
// How a device asks its host for what it wants itself: maps to be read, leases, mapping feeds. In
// earnest by rings (host_rings.hpp); a simulated world has messages of its own.
//
// Thread: that of the worker.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "channel/device/host_answer.hpp"
#include "wire/message.hpp"

namespace espalier::device {

class HostAsker {
 public:
  /// Gets the answer, once: what the host said, or no more than a code, if it is gone.
  using OnAnswer = std::function<void(const HostAnswer& answer)>;

  virtual void ask(wire::OffloadId offload, std::uint32_t map, std::string payload,
                   OnAnswer on_answer) = 0;

 protected:
  ~HostAsker() = default;
};

}  // namespace espalier::device
