// SPDX-License-Identifier: Apache-2.0
// Request to stop a command that runs indefinitely: the interface that tests replace.
// tools/stop_signals.hpp is the real one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace espalier::tools {

/// Thread: that which made it.
class StopRequest {
 public:
  virtual ~StopRequest() = default;
  /// Waits for a request to stop, and returns its description; empty: timed out.
  [[nodiscard]] virtual std::string wait(std::optional<std::uint64_t> at_most_ns) = 0;
};

}  // namespace espalier::tools
