// SPDX-License-Identifier: Apache-2.0
// A switch between clients and a node, with its control, on two threads of its own.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "dataplane/memif_switch.hpp"
#include "dataplane/switch_control.hpp"

namespace espalier::dataplane {

class RunningSwitch {
 public:
  struct Options {
    MemifSwitch::Options links;
    std::string control;  ///< the socket at which it takes tables
  };
  /// Errors: as MemifSwitch::open and ControlServer::open.
  static Result<std::unique_ptr<RunningSwitch>> open(const Options& options);
  ~RunningSwitch();
  RunningSwitch(const RunningSwitch&) = delete;
  RunningSwitch& operator=(const RunningSwitch&) = delete;

  /// READs that it has redirected.
  [[nodiscard]] std::uint64_t redirected() const;

 private:
  RunningSwitch() = default;
  void forward();

  InstalledFunction function_;
  std::unique_ptr<MemifSwitch> switch_;
  SwitchControl control_{function_, [](std::string&) {}};
  std::unique_ptr<ControlServer> server_;
  std::atomic<bool> ends_{false};
  std::thread forwarding_;
  std::thread controlling_;
};

}  // namespace espalier::dataplane
