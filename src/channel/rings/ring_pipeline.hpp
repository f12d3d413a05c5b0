// SPDX-License-Identifier: Apache-2.0
// A pipeline of requests through a lane of its own, which it returns at the end.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "channel/rings/pipeline_impl.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/remote_sessions.hpp"

namespace espalier::client {

class RingPipeline final : public PipelineImpl {
 public:
  RingPipeline(std::shared_ptr<RemoteSessions> sessions, std::unique_ptr<ThreadRings> rings,
               const Scope& scope, std::uint32_t in_flight)
      : sessions_(std::move(sessions)),
        rings_(std::move(rings)),
        requests_(std::make_unique<RemoteRequests>(*rings_, in_flight)),
        scope_(scope) {}
  ~RingPipeline() override {
    requests_.reset();
    sessions_->release(std::move(rings_));
  }

  void submit(std::span<const Request> requests, Handler& handler) override {
    requests_->submit(requests, handler, scope_);
  }
  std::size_t poll() override { return requests_->poll(); }
  std::size_t advance() override { return requests_->advance(); }
  void run(std::span<const Request> requests, Handler& handler) override {
    submit(requests, handler);
    requests_->drain();
  }

 private:
  const std::shared_ptr<RemoteSessions> sessions_;
  std::unique_ptr<ThreadRings> rings_;
  std::unique_ptr<RemoteRequests> requests_;
  const Scope scope_;
};

}  // namespace espalier::client
