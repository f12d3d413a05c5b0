// SPDX-License-Identifier: Apache-2.0
#include "kinds/region/offload/region_host.hpp"

#include <atomic>
#include <memory>
#include <utility>

#include "base/places.hpp"
#include "engine/connection.hpp"
#include "engine/endpoint_side.hpp"
#include "engine/principal_accounts.hpp"
#include "kinds/region/planted_region_bugs.hpp"

namespace espalier::offload {
namespace {

/// The place of a key among those of its principal and of the process.
class KeyPlace {
 public:
  explicit KeyPlace(PrincipalRef account)
      : account_(std::move(account)), share_(account_->parts.of<RegionShare>()) {
    share_.keys.fetch_add(1);
    RegionHost::keys_of_process().fetch_add(1);
  }
  KeyPlace(const KeyPlace&) = delete;
  KeyPlace& operator=(const KeyPlace&) = delete;
  ~KeyPlace() {
    share_.keys.fetch_sub(1);
    RegionHost::keys_of_process().fetch_sub(1);
  }

 private:
  const PrincipalRef account_;
  RegionShare& share_;
};

Result<std::shared_ptr<const void>> place_of_key(const PrincipalRef& account) {
  std::shared_ptr<const void> place = std::make_shared<KeyPlace>(account);
  if (account->parts.of<RegionShare>().keys.load() > RegionHost::kPrincipalMax) {
    return base::full(base::Places::principal_region_keys, RegionHost::kPrincipalMax);
  }
  if (RegionHost::keys_of_process().load() > RegionHost::kProcessMax) {
    return base::full(base::Places::process_region_keys, RegionHost::kProcessMax);
  }
  return place;
}

}  // namespace

std::atomic<std::uint32_t>& RegionHost::keys_of_process() {
  static std::atomic<std::uint32_t> keys{0};
  return keys;
}

RegionHost* RegionHost::of(Connection& connection) {
  const LinkSide* const side = connection.side.get();
  if (side == nullptr || !side->endpoint.lets_write()) return nullptr;
  return &connection.parts.of<RegionHost>(
      side->endpoint.regions, side->domain, side->endpoint.properties.atomic_with_processor,
      side->endpoint.properties.peer_maps_memory, connection.account);
}

region::RegionGrant RegionHost::grant_of(const region::RegionKey& key,
                                         const region::RegionObject& of) const {
  const fabric::RemoteRegion& remote = key.remote();
  return {remote.base, remote.bytes, remote.key, lets_add(of) ? region::kGrantsAtomics : 0};
}

Result<region::RegionGrant> RegionHost::open(region::RegionObject& of, bool another) {
  if (of.is_persistent() && maps_memory_) return fail(Code::unsupported);
  const auto known = keys_.find(of.id());
  if (known != keys_.end()) {
    if (!another && known->second.good()) return grant_of(known->second, of);
    auto before = keys_.extract(known);  // what left by it is over before there is another
    if (region::planted(region::Bug::key_kept_beside_another)) {
      before.key() = ~of.id();
      keys_.insert(std::move(before));
    }
  }
  if (keys_.size() >= kRegionsMax) {
    std::erase_if(keys_, [](const auto& each) { return !each.second.good(); });
  }
  if (keys_.size() >= kRegionsMax) return base::full(base::Places::region_keys, kRegionsMax);
  fabric::RemoteRights rights = fabric::RemoteRights::read | fabric::RemoteRights::write;
  if (lets_add(of)) rights = rights | fabric::RemoteRights::atomic;
  auto place = place_of_key(account_);
  if (!place) return std::unexpected(place.error());
  auto key = of.offer(regions_, rights, domain_, std::move(*place));
  if (!key) return std::unexpected(key.error());
  const region::RegionGrant grant = grant_of(*key, of);
  keys_.emplace(of.id(), std::move(*key));
  return grant;
}

}  // namespace espalier::offload
