// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "client/impl.hpp"
#include "client/no_memory.hpp"

namespace espalier {

Pipeline::Pipeline(std::unique_ptr<client::PipelineImpl> impl) : impl_(std::move(impl)) {}
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;
Pipeline::~Pipeline() = default;

Result<Pipeline> Pipeline::open(const Map& map, std::uint32_t in_flight) {
  if (in_flight < 1 || in_flight > 256) return fail(Code::invalid_argument, in_flight);
  auto impl = client::or_out_of_memory([&] { return map.impl_->open_pipeline(in_flight); });
  if (!impl) return std::unexpected(impl.error());
  return Pipeline(std::move(*impl));
}

void Pipeline::run(std::span<const Request> requests, Handler& handler) {
  impl_->run(requests, handler);
}

void Pipeline::submit(std::span<const Request> requests, Handler& handler) {
  impl_->submit(requests, handler);
}

std::size_t Pipeline::poll() { return impl_->poll(); }

std::size_t Pipeline::advance() { return impl_->advance(); }

}  // namespace espalier
