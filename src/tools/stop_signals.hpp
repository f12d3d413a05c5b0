// SPDX-License-Identifier: Apache-2.0
// SIGTERM and SIGINT as a request to stop; for a node also SIGHUP, as a request to read its
// configuration again.
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
  enum class Hangup : std::uint8_t { as_before, waited_for };

  explicit StopSignals(Hangup hangup = Hangup::as_before);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals() override;

  /// Waits for one of them, and returns its name. From then on they end the process: also where
  /// whoever started it had them ignored, as shells do with SIGINT for what runs in the background.
  /// SIGHUP is returned too where it is waited for, and changes nothing, nor does there the end of
  /// the time: wait again.
  [[nodiscard]] std::string wait(std::optional<std::uint64_t> at_most_ns = {}) override;
  /// Has wait() return, as a SIGTERM to this process would. Thread: any, while one of these lives.
  static void stop_this_process() noexcept;
  /// Who sent the one that came last: "process 12 of user 0".
  [[nodiscard]] const std::string& sender() const { return sender_; }

 private:
  sigset_t signals_{};
  sigset_t before_{};
  std::string sender_;
};

}  // namespace espalier::tools
