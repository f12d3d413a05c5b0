// SPDX-License-Identifier: Apache-2.0
#include "client/impl.hpp"

namespace espalier {
namespace client {

namespace {

// Interior nodes and the page table of so many leaves no longer fit a core's own cache.
constexpr std::uint64_t kWarmLeaves = 100'000;

}  // namespace

PipelineImpl::PipelineImpl(MapImpl& map_in, Session* session_in, std::uint32_t in_flight)
    : map(map_in), session(session_in) {
  look_at_size();
  engine = std::make_unique<HostEngine>(session->worker, *map.core, in_flight,
                                        [this, in_flight](std::uint32_t, base::ReadyQueue& queue) {
                                          return tree::HostAccess(map.core->base, queue,
                                                                  in_flight > 1, &interleave_warm);
                                        });
}

PipelineImpl::~PipelineImpl() {
  engine->drain();
  engine.reset();
  map.sessions->release(session);
}

void PipelineImpl::look_at_size() {
  interleave_warm = map.core->leaves.load(std::memory_order_relaxed) > kWarmLeaves;
}

}  // namespace client

Pipeline::Pipeline(std::unique_ptr<client::PipelineImpl> impl) : impl_(std::move(impl)) {}
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;
Pipeline::~Pipeline() = default;

Result<Pipeline> Pipeline::open(const Map& map, std::uint32_t in_flight) {
  if (in_flight < 1 || in_flight > 256) return fail(Code::invalid_argument, in_flight);
  const auto session = map.impl_->sessions->acquire();
  if (!session) return std::unexpected(session.error());
  return Pipeline(std::make_unique<client::PipelineImpl>(*map.impl_, *session, in_flight));
}

void Pipeline::run(std::span<const Request> requests, Handler& handler) {
  submit(requests, handler);
  impl_->engine->drain();
}

void Pipeline::submit(std::span<const Request> requests, Handler& handler) {
  impl_->look_at_size();
  impl_->engine->submit(requests, handler);
}

std::size_t Pipeline::poll() { return impl_->engine->poll(); }

}  // namespace espalier
