// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "kinds/map/client/embedded_map.hpp"

namespace espalier::client {

EmbeddedPipeline::EmbeddedPipeline(tree::MapCore& core, std::shared_ptr<CallContextPool> sessions,
                                   CallContext* session, std::uint32_t in_flight)
    : core_(core), sessions_(std::move(sessions)), session_(session) {
  look_at_size();
  executor_ = std::make_unique<tree::MapExecutor>(
      session->thread, core, in_flight, [this, in_flight](std::uint32_t, base::ReadyQueue& queue) {
        return tree::HostAccess(core_.base, queue, in_flight > 1, &interleave_warm_);
      });
}

EmbeddedPipeline::~EmbeddedPipeline() {
  executor_->drain();
  executor_.reset();
  sessions_->release(session_);
}

void EmbeddedPipeline::look_at_size() { interleave_warm_ = core_.far_interior(); }

void EmbeddedPipeline::submit(std::span<const Request> requests, Handler& handler) {
  look_at_size();
  wait_before_writes(core_, requests);
  executor_->submit(requests, handler);
}

void EmbeddedPipeline::run(std::span<const Request> requests, Handler& handler) {
  submit(requests, handler);
  executor_->drain();
}

}  // namespace espalier::client
