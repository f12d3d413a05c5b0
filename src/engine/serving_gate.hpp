// SPDX-License-Identifier: Apache-2.0
// Whether a node may answer: a member of a chain may only while it is the head and knows that no
// other is (docs/design/chains.md). A node outside a chain has no gate.
//
// The gate is checked when an answer, or a part of one, is sent. If it is open then, it was open
// whenever the answer's data was read, since it never opens for the past. An answer that is
// withheld ends its connection, so the client turns to another member.
//
// Thread: any; `refused` is set before the node serves.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "engine/node_parts.hpp"

namespace espalier::offload {

struct ServingGate final : NodePart {
  /// Answers may be sent until then, on base::boot_ns(); 0: none may be.
  std::atomic<std::uint64_t> until_ns{0};
  /// Calls, by number, that change what a chain does not replicate, and the reason in words.
  std::array<bool, 256> refused{};
  std::string why_refused;

  [[nodiscard]] bool is_open() const {
    return base::boot_ns() < until_ns.load(std::memory_order_acquire);
  }
};

}  // namespace espalier::offload
