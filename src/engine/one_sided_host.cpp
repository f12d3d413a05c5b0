// SPDX-License-Identifier: Apache-2.0
#include "engine/one_sided_host.hpp"

#include <algorithm>
#include <utility>

#include "engine/connection.hpp"
#include "engine/endpoint_side.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "engine/services.hpp"
#include "memory/shared_memory.hpp"
#include "store/store_core.hpp"
#include "wire/one_sided.hpp"

namespace espalier::offload {

void fence_and_end(fabric::Registration& region, base::LeaseTable& leases,
                   std::vector<base::LeaseId>& held) {
  if (!planted(Bug::lease_not_fenced)) {
    region.revoke();
    ESPALIER_ASSERT(!region);  // before its leases no longer count
  }
  if (planted(Bug::lease_without_end)) return;
  for (const base::LeaseId lease : held) leases.end(lease);
  held.clear();
}

OneSidedHost* OneSidedHost::of(Connection& connection) {
  const LinkSide* const side = connection.side.get();
  if (side == nullptr || !side->endpoint.one_sided) return nullptr;
  return &connection.parts.of<OneSidedHost>(side->endpoint.services.store, side->endpoint.regions,
                                            side->domain, side->session_number);
}

const base::LeaseTerms& OneSidedHost::terms() const { return store_.leases.terms(); }

void OneSidedHost::fence() { fence_and_end(region_, store_.leases, leases_); }

Result<fabric::RemoteRegion> OneSidedHost::offer() {
  if (region_) return region_.remote();
  const memory::Region& region = store_.region;
  auto descriptor = region.read_only();
  if (!descriptor) return std::unexpected(descriptor.error());
  // The table keeps a read-only copy of the descriptor.
  auto offered = regions_.offer({region.base(), region.bytes(), descriptor->number(), 0},
                                fabric::RemoteRights::read, domain_);
  if (!offered) return std::unexpected(offered.error());
  region_ = std::move(*offered);
  return region_.remote();
}

Result<base::LeaseTable::Granted> OneSidedHost::grant(std::uint64_t now_ns) {
  ESPALIER_ASSERT(region_);  // while a lease counts, its reader's key is valid
  if (leases_.size() >= kLeasesMax) return fail(Code::out_of_memory, kLeasesMax);
  const auto granted = store_.leases.grant(session_, now_ns);
  leases_.push_back(granted.id);
  return granted;
}

Result<std::uint64_t> OneSidedHost::renew(base::LeaseId lease, std::uint64_t oldest,
                                          std::uint64_t now_ns) {
  if (std::ranges::find(leases_, lease) == leases_.end()) return fail(Code::not_found);
  ESPALIER_ASSERT(region_);
  if (oldest != wire::kLeaseGivenBack) return store_.leases.renew(lease, oldest, now_ns);
  // The client states that it reads nothing under this lease, so nothing needs fencing.
  const auto epoch = store_.leases.renew(lease, 0, now_ns);
  store_.leases.end(lease);
  std::erase(leases_, lease);
  return epoch;
}

}  // namespace espalier::offload
