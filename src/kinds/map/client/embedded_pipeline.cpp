// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "catalog/unflushed_age.hpp"
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
  writes_ = writes_ || (core_.is_async() && some_write(requests));
  executor_->submit(requests, handler);
}

// A submitted request is written at its turn, possibly long after its submission.
void EmbeddedPipeline::wait_before_writes() {
  if (!writes_) return;
  writes_ = executor_->pending() != 0;
  if (writes_) catalog::wait_for_disk(core_);
}

std::size_t EmbeddedPipeline::poll() {
  wait_before_writes();
  return executor_->poll();
}

// Runs nothing while its writes would have to wait.
std::size_t EmbeddedPipeline::advance() {
  writes_ = writes_ && executor_->pending() != 0;
  if (writes_ && catalog::must_wait_for_disk(core_)) return executor_->pending();
  return executor_->advance();
}

void EmbeddedPipeline::run(std::span<const Request> requests, Handler& handler) {
  submit(requests, handler);
  while (writes_) poll();  // checks the disk before each batch of them, not once
  executor_->drain();
}

}  // namespace espalier::client
