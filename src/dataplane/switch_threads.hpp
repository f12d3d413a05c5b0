// SPDX-License-Identifier: Apache-2.0
// The two threads of a switch: one forwards frames, one serves its control.
//
// Thread: one makes and ends it.
#pragma once

#include <atomic>
#include <thread>

#include "dataplane/control_server.hpp"
#include "dataplane/memif_switch.hpp"

namespace espalier::dataplane {

class SwitchThreads {
 public:
  /// Both outlive it. `spin`: never sleep, which answers sooner and takes a core.
  SwitchThreads(MemifSwitch& forwards, ControlServer& serves, bool spin);
  ~SwitchThreads();
  SwitchThreads(const SwitchThreads&) = delete;
  SwitchThreads& operator=(const SwitchThreads&) = delete;

 private:
  void forward();

  MemifSwitch& switch_;
  ControlServer& server_;
  const bool spin_;
  std::atomic<bool> ends_{false};
  std::thread forwarding_;
  std::thread controlling_;
};

}  // namespace espalier::dataplane
