// SPDX-License-Identifier: Apache-2.0
// A device in a process of its own. The process is forked when this is made, so before there are
// other threads, and serves on request.
//
// Thread: belongs to one, the only one in the process when this is made.
#pragma once

#include <signal.h>

#include <stdexcept>
#include <string>

#include "device/device.hpp"
#include "node/config.hpp"
#include "tests/support/child.hpp"

namespace espalier::test {

class DeviceProcess {
 public:
  explicit DeviceProcess(const node::Config& config)
      : child_([&config](Line& line) { return serve(line, config); }) {}

  /// Returns when it serves. Requires: its host serves. Throws the reason of a failure.
  void start() {
    std::string said;
    child_.line().send("start");
    if (!child_.line().receive(said)) said = "it died";
    if (said != kServes) throw std::runtime_error("the device cannot start: " + said);
  }
  void stop() const { ::kill(child_.process(), SIGSTOP); }
  void go_on() const { ::kill(child_.process(), SIGCONT); }
  /// Returns minus the signal that ended it.
  int kill() {
    child_.kill();
    return child_.wait();
  }

 private:
  static constexpr const char* kServes = "serves";
  // Test machines may be so busy that nothing proceeds for seconds.
  static constexpr std::uint64_t kHostTimeoutNs = 10'000'000'000;

  static int serve(Line& line, const node::Config& config) {
    std::string asked;
    if (!line.receive(asked)) return 0;
    auto host = device::host_options(config);
    if (!host) return 1;
    host->timeout_ns = kHostTimeoutNs;
    auto device = device::Device::start(config, {.host = *host, .node = {}, .begun_anew = [] {}});
    line.send(device ? kServes : message(device.error()));
    while (line.receive(asked)) {
    }
    return 0;
  }

  Child child_;
};

}  // namespace espalier::test
