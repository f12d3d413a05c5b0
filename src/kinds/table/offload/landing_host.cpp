// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/offload/landing_host.hpp"

#include <utility>

#include "base/bytes.hpp"
#include "base/places.hpp"
#include "engine/connection.hpp"
#include "engine/endpoint_side.hpp"
#include "engine/services.hpp"
#include "kinds/table/format/landing.hpp"
#include "wire/ring_link.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint64_t kPageBytes = 4096;  // whole ones are taken

// A pair for each, by which its client may WRITE it.
static_assert(wire::kLandingWindowsMax <= wire::kLinkWritesMax);

}  // namespace

LandingHost* LandingHost::of(Connection& connection) {
  const LinkSide* const side = connection.side.get();
  if (side == nullptr || !side->endpoint.lets_write()) return nullptr;
  const EndpointSide& endpoint = side->endpoint;
  return &connection.parts.of<LandingHost>(endpoint.regions, side->domain,
                                           endpoint.properties.peer_maps_memory,
                                           endpoint.services.budget, connection.share);
}

// Rows of which a request is still copying are there until it has.
void LandingHost::end() {
  for (const auto& [number, window] : windows_) window->revoke();
  windows_.clear();
  bytes_ = 0;
}

Result<LandingHost::Opened> LandingHost::open(std::uint64_t bytes) {
  using fabric::LandingRegion;
  if (bytes == 0 || bytes > LandingRegion::kBytesMax) {
    return fail(Code::invalid_argument, LandingRegion::kBytesMax);
  }
  if (windows_.size() >= wire::kLandingWindowsMax) {
    return base::full(base::Places::landing_windows, wire::kLandingWindowsMax);
  }
  const std::uint64_t taken = base::round_up(bytes, kPageBytes);
  if (!share_.allows(bytes_ + taken) || !budget_.take(taken)) return fail(Code::out_of_memory);
  auto region = LandingRegion::create(regions_, {taken, domain_, peer_maps_memory_});
  if (!region) {
    budget_.give(taken);
    return std::unexpected(region.error());
  }
  const std::uint64_t number = next_window_++;
  auto window = std::make_shared<LandingWindow>(std::move(*region), budget_);
  bytes_ += taken;
  const fabric::RemoteRegion remote = window->region().remote();
  windows_.emplace(number, std::move(window));
  return Opened{number, remote};
}

std::shared_ptr<const LandingWindow> LandingHost::find(std::uint64_t window) const {
  const auto found = windows_.find(window);
  return found == windows_.end() ? nullptr : found->second;
}

bool LandingHost::close(std::uint64_t window) {
  const auto found = windows_.find(window);
  if (found == windows_.end()) return false;
  found->second->revoke();
  bytes_ -= found->second->region().bytes();
  windows_.erase(found);
  return true;
}

}  // namespace espalier::offload
