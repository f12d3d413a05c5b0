// SPDX-License-Identifier: Apache-2.0
#include "kinds/region/offload/region_host.hpp"

#include <utility>

#include "base/places.hpp"
#include "engine/connection.hpp"
#include "engine/endpoint_side.hpp"

namespace espalier::offload {

RegionHost* RegionHost::of(Connection& connection) {
  const LinkSide* const side = connection.side.get();
  if (side == nullptr || !side->endpoint.lets_write()) return nullptr;
  return &connection.parts.of<RegionHost>(side->endpoint.regions, side->domain,
                                          side->endpoint.properties.atomic_with_processor);
}

region::RegionGrant RegionHost::grant_of(const region::RegionKey& key) const {
  const fabric::RemoteRegion& remote = key.remote();
  return {remote.base, remote.bytes, remote.key, atomics_ ? region::kGrantsAtomics : 0};
}

Result<region::RegionGrant> RegionHost::open(region::RegionObject& of, bool another) {
  const auto known = keys_.find(of.id());
  if (known != keys_.end()) {
    if (!another && known->second.good()) return grant_of(known->second);
    keys_.erase(known);  // what left by it is over before there is another
  }
  if (keys_.size() >= kRegionsMax) {
    std::erase_if(keys_, [](const auto& each) { return !each.second.good(); });
  }
  if (keys_.size() >= kRegionsMax) return base::full(base::Places::region_keys, kRegionsMax);
  fabric::RemoteRights rights = fabric::RemoteRights::read | fabric::RemoteRights::write;
  if (atomics_) rights = rights | fabric::RemoteRights::atomic;
  auto key = of.offer(regions_, rights, domain_);
  if (!key) return std::unexpected(key.error());
  const region::RegionGrant grant = grant_of(*key);
  keys_.emplace(of.id(), std::move(*key));
  return grant;
}

}  // namespace espalier::offload
