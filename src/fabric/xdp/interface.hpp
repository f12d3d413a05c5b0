// SPDX-License-Identifier: Apache-2.0
// What a port must know of the network interface that it sends through.
//
// Thread: any; plain values.
#pragma once

#include <cstdint>
#include <string>

#include "espalier/error.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/ip_flow.hpp"

namespace espalier::fabric::xdp {

struct Interface {
  std::uint32_t number = 0;
  std::uint32_t mtu_bytes = 0;  // of IP packets
  std::uint32_t queues = 1;     // that packets may arrive in
  roce::MacAddress mac{};

  /// Looks it up by its name, in the calling thread's network namespace. Errors: system (detail:
  /// errno; ENODEV: there is none), unsupported (detail: Unsupported::ethernet).
  static Result<Interface> find(const std::string& name);
};

/// Whether an interface has this address. Errors: system.
Result<bool> has_address(const std::string& interface, const roce::IpAddress& ip);

}  // namespace espalier::fabric::xdp
