// SPDX-License-Identifier: Apache-2.0
// A switch between clients and a node, with its control and its threads.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "dataplane/control_server.hpp"
#include "dataplane/memif_switch.hpp"
#include "dataplane/switch_threads.hpp"

namespace espalier::dataplane {

class RunningSwitch {
 public:
  struct Options {
    MemifSwitch::Options links;
    std::string control;  ///< the socket at which it takes tables
  };
  /// Errors: as MemifSwitch::open and ControlServer::open.
  static Result<std::unique_ptr<RunningSwitch>> open(const Options& options);
  RunningSwitch(const RunningSwitch&) = delete;
  RunningSwitch& operator=(const RunningSwitch&) = delete;

  /// READs that it has redirected.
  [[nodiscard]] std::uint64_t redirected() const;

 private:
  RunningSwitch() = default;

  InstalledFunction function_;
  std::unique_ptr<MemifSwitch> switch_;
  SwitchControl control_{function_, [](std::string&) {}};
  std::unique_ptr<ControlServer> server_;
  std::optional<SwitchThreads> threads_;
};

}  // namespace espalier::dataplane
