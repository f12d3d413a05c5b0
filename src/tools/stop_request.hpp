// SPDX-License-Identifier: Apache-2.0
// When a command that runs for as long as one wants must end: the seam that tests replace.
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
  /// Waits until somebody asks to stop, and returns in what form; empty: the time was over before.
  [[nodiscard]] virtual std::string wait(std::optional<std::uint64_t> at_most_ns) = 0;
};

}  // namespace espalier::tools
