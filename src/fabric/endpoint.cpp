// SPDX-License-Identifier: Apache-2.0
#include "fabric/endpoint.hpp"

#include <utility>

namespace espalier::fabric {
namespace {

// Queues are indexed by 32-bit counters, and this is far more than a core can make use of.
constexpr std::uint32_t kDepthMax = 1u << 16;

}  // namespace

Endpoint::Endpoint(const Properties& properties, std::shared_ptr<RegionTable> regions)
    : properties_(properties), regions_(std::move(regions)) {}

Endpoint::~Endpoint() = default;

Result<void> Endpoint::check(const QueuePairOptions& options, std::span<const std::byte> data,
                             std::size_t data_max) {
  const auto depth = [](std::uint32_t of) { return of >= 1 && of <= kDepthMax; };
  const bool good = options.sends != nullptr && depth(options.send_depth) &&
                    depth(options.receive_depth) && options.reads_in_flight >= 1 &&
                    (options.mtu_bytes == 1024 || options.mtu_bytes == 4096) &&
                    options.retries <= 7 && options.receive_retries <= 7 && data.size() <= data_max;
  if (!good) return fail(Code::invalid_argument);
  return {};
}

}  // namespace espalier::fabric
