// SPDX-License-Identifier: Apache-2.0
// SIGTERM and SIGINT as a request to stop; for a node also SIGHUP, as a request to reload its
// configuration.
//
// They are blocked while this lives, so create it before threads, which inherit the mask. After the
// first one they have their default action: a second one ends the process immediately.
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

  /// Waits for one of them, and returns its name. From then on they end the process, even if they
  /// were ignored at its start, as shells do with SIGINT for background processes. SIGHUP is
  /// returned too if waited for, and changes nothing; neither does a timeout: wait again.
  [[nodiscard]] std::string wait(std::optional<std::uint64_t> at_most_ns = {}) override;
  /// Makes wait() return, as a SIGTERM to this process would. Thread: any, while one of these
  /// lives.
  static void stop_this_process() noexcept;
  /// Sender of the last one: "process 12 of user 0".
  [[nodiscard]] const std::string& sender() const { return sender_; }

 private:
  sigset_t signals_{};
  sigset_t before_{};
  std::string sender_;
};

}  // namespace espalier::tools
