// SPDX-License-Identifier: Apache-2.0
// Packets by hand through any port, for tests of ports.
//
// Thread: that of the port.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/roce/format.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::roce {

using Bytes = std::vector<std::byte>;

inline constexpr std::uint64_t kSecond = 1'000'000'000;  // in nanoseconds

/// Returns whether there was room.
inline bool send(PacketPort& from, const PortAddress& to, const Bytes& bytes) {
  std::byte* const at = from.begin(to, bytes.size());
  if (at == nullptr) return false;
  std::copy(bytes.begin(), bytes.end(), at);
  from.seal();
  return true;
}

struct Came {
  PortAddress from;
  Bytes bytes;  // without the ICRC
};
inline std::vector<Came> take(PacketPort& port) {
  std::vector<Came> came;
  for (const Arrived& arrived : port.receive()) {
    came.push_back({arrived.from, {arrived.ib.begin(), arrived.ib.end() - wire::roce::kIcrcBytes}});
  }
  return came;
}

}  // namespace espalier::fabric::roce
