// SPDX-License-Identifier: Apache-2.0
// Names of events in a world's trace: numbers for kinds of events and their pairs.
//
// Thread: plain values.
#pragma once

#include <cstdint>

#include "base/random.hpp"
#include "fabric/sim/message.hpp"

namespace espalier::fabric::sim {

enum class What : std::uint8_t {
  action = 1,
  message,
  doorbell,
  timer,
  not_ready_over,
  connecting,
  end_again,
  line_read,
  line_written,
  delivered,
  atomic,
  completed,
  completed_receive,
};

[[nodiscard]] constexpr std::uint64_t tag_of(What what, PairName whom = {},
                                             std::uint64_t which = 0) {
  const std::uint64_t name = std::uint64_t{whom.endpoint} << 32 | whom.number;
  return base::mix64(base::mix64(name + 1) + which) + static_cast<std::uint64_t>(what);
}

}  // namespace espalier::fabric::sim
