// SPDX-License-Identifier: Apache-2.0
#include "dataplane/running_switch.hpp"

#include <utility>

namespace espalier::dataplane {

Result<std::unique_ptr<RunningSwitch>> RunningSwitch::open(const Options& options) {
  std::unique_ptr<RunningSwitch> running(new RunningSwitch);
  auto opened = MemifSwitch::open(options.links, running->function_);
  if (!opened) return std::unexpected(opened.error());
  running->switch_ = std::move(*opened);
  auto server = ControlServer::open(options.control, running->control_);
  if (!server) return std::unexpected(server.error());
  running->server_ = std::move(*server);
  running->threads_.emplace(*running->switch_, *running->server_, false);
  return running;
}

std::uint64_t RunningSwitch::redirected() const { return switch_->counters().redirected_in_all(); }

}  // namespace espalier::dataplane
