// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/until_fork.hpp"
#include "channel/public_call.hpp"
#include "kinds/map/client/map_impl.hpp"

namespace espalier {
namespace {

void refuse_all(std::span<const Request> requests, Handler& handler, Code code) {
  for (const Request& request : requests) {
    Completion refused;
    refused.tag = request.tag;
    refused.op = request.op;
    refused.error = {code, 0, 0};
    handler.done(refused);
  }
}

}  // namespace

void client::DeleteBehind::operator()(PipelineImpl* impl) const noexcept {
  DeleteUnlessCopy()(impl);
}

Pipeline::Pipeline(std::unique_ptr<client::PipelineImpl> impl) : impl_(impl.release()) {}
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;
Pipeline::~Pipeline() = default;

Result<Pipeline> Pipeline::open(const Map& map, std::uint32_t in_flight) {
  if (in_flight < 1 || in_flight > 256) return fail(Code::invalid_argument, in_flight);
  auto impl = client::call(*map.impl_, [&] { return map.impl_->open_pipeline(in_flight); });
  if (!impl) return std::unexpected(impl.error());
  return Pipeline(std::move(*impl));
}

void Pipeline::run(std::span<const Request> requests, Handler& handler) {
  if (impl_->is_copy()) return refuse_all(requests, handler, Code::forked);
  impl_->run(requests, handler);
}

void Pipeline::submit(std::span<const Request> requests, Handler& handler) {
  if (impl_->is_copy()) return refuse_all(requests, handler, Code::forked);
  impl_->submit(requests, handler);
}

std::size_t Pipeline::poll() { return impl_->is_copy() ? 0 : impl_->poll(); }

std::size_t Pipeline::advance() { return impl_->is_copy() ? 0 : impl_->advance(); }

}  // namespace espalier
