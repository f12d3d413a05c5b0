// SPDX-License-Identifier: Apache-2.0
#include "dataplane/running_switch.hpp"

#include <utility>

namespace espalier::dataplane {
namespace {

constexpr std::uint32_t kQuietPolls = 200;  // in a row, before it sleeps
constexpr std::uint64_t kNapNs = 1'000'000;

}  // namespace

Result<std::unique_ptr<RunningSwitch>> RunningSwitch::open(const Options& options) {
  std::unique_ptr<RunningSwitch> running(new RunningSwitch);
  auto opened = MemifSwitch::open(options.links, running->function_);
  if (!opened) return std::unexpected(opened.error());
  running->switch_ = std::move(*opened);
  auto server = ControlServer::open(options.control, running->control_);
  if (!server) return std::unexpected(server.error());
  running->server_ = std::move(*server);
  running->forwarding_ = std::thread([self = running.get()] { self->forward(); });
  running->controlling_ = std::thread([self = running.get()] { self->server_->run(); });
  return running;
}

RunningSwitch::~RunningSwitch() {
  ends_.store(true, std::memory_order_relaxed);
  if (forwarding_.joinable()) {
    switch_->wake();
    forwarding_.join();
  }
  if (controlling_.joinable()) {
    server_->stop();
    controlling_.join();
  }
}

void RunningSwitch::forward() {
  std::uint32_t quiet = 0;
  while (!ends_.load(std::memory_order_relaxed)) {
    quiet = switch_->poll() == 0 ? quiet + 1 : 0;
    if (quiet >= kQuietPolls) switch_->wait(kNapNs);
  }
}

std::uint64_t RunningSwitch::redirected() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : switch_->counters().redirected) sum += count;
  return sum;
}

}  // namespace espalier::dataplane
