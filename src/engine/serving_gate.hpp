// SPDX-License-Identifier: Apache-2.0
// Whether a node may answer: one that is a member of a chain may only while it is the head, and
// knows that no other is (docs/design/chains.md). A node that is in no chain has no gate.
//
// An answer, or a part of one, is held to it when it is given: the gate was open then, so it was
// open whenever what the answer says was read, for it never opens for the time before. What may not
// be answered ends its connection, so that the client asks elsewhere.
//
// Thread: any; what is refused is set before the node serves.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "engine/node_parts.hpp"

namespace espalier::offload {

struct ServingGate final : NodePart {
  /// Until when answers may be given, on base::boot_ns(); 0: none may be.
  std::atomic<std::uint64_t> until_ns{0};
  /// Calls that change what has no place in a chain, by number, and why, in words.
  std::array<bool, 256> refused{};
  std::string why_refused;

  [[nodiscard]] bool is_open() const {
    return base::boot_ns() < until_ns.load(std::memory_order_acquire);
  }
};

}  // namespace espalier::offload
