// SPDX-License-Identifier: Apache-2.0
// SIGTERM and SIGINT as a request to stop.
//
// They are blocked for as long as this lives, so make it before threads, which inherit that. After
// the first one they are as the system has them: a second one ends the process at once.
#pragma once

#include <signal.h>

#include "tools/stop_request.hpp"

namespace espalier::tools {

/// Thread: that which made it.
class StopSignals final : public StopRequest {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals() override;

  /// Waits for one of them, and returns its name. From then on they end the process: also where
  /// whoever started it had them ignored, as shells do with SIGINT for what runs in the background.
  [[nodiscard]] std::string wait(std::optional<std::uint64_t> at_most_ns = {}) override;

 private:
  sigset_t signals_{};
  sigset_t before_{};
};

}  // namespace espalier::tools
