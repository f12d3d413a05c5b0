// SPDX-License-Identifier: Apache-2.0
// What lets one client read the store's memory by itself: a registration of the region for its
// session alone, and its leases.
//
// Thread: that of the client's scheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "base/assert.hpp"
#include "base/lease_table.hpp"
#include "engine/session_parts.hpp"
#include "fabric/region_table.hpp"

namespace espalier::tree {
struct StoreCore;
}

namespace espalier::offload {

class Connection;

/// Ends leases of one session: revokes its key, which waits for accesses that began, and only then
/// leaves the leases out of what holds memory back (DESIGN §2.1 rule 4).
void fence_and_end(fabric::Registration& region, base::LeaseTable& leases,
                   std::vector<base::LeaseId>& held);

/// One session's. Ends its leases, after fencing it, when it ends.
class OneSidedHost final : public SessionPart {
 public:
  /// The session's, made when first asked for; null: it may not read.
  [[nodiscard]] static OneSidedHost* of(Connection& connection);
  /// `domain`: of the session's queue pairs. `regions`: of the endpoint at which they are.
  /// `session`: its number, by which operators know it.
  OneSidedHost(tree::StoreCore& store, fabric::RegionTable& regions, fabric::Domain domain,
               std::uint64_t session)
      : store_(store), regions_(regions), domain_(domain), session_(session) {}
  ~OneSidedHost() override { fence(); }
  OneSidedHost(const OneSidedHost&) = delete;
  OneSidedHost& operator=(const OneSidedHost&) = delete;

  /// Offers the region, if it is not offered already.
  /// Errors: unsupported (the node does not offer its memory), out_of_memory, system.
  Result<fabric::RemoteRegion> offer();
  /// Errors: out_of_memory (the session has too many leases).
  Result<base::LeaseTable::Granted> grant(std::uint64_t now_ns);
  /// `oldest`: wire::LeaseRenewal; a lease that is given back ends, and no other, nor the key.
  /// Errors: as LeaseTable::renew; not_found for a lease that is not the session's.
  Result<std::uint64_t> renew(base::LeaseId lease, std::uint64_t oldest, std::uint64_t now_ns);
  /// On which leases are granted.
  [[nodiscard]] const base::LeaseTerms& terms() const;
  [[nodiscard]] bool has_leases() const { return !leases_.empty(); }
  /// By which the region is READ. Requires: offer() has succeeded, and it was not fenced since.
  [[nodiscard]] fabric::RegionKey key() const {
    ESPALIER_ASSERT(region_);
    return region_.remote().key;
  }
  /// Its number: the owner of its leases.
  [[nodiscard]] std::uint64_t session() const { return session_; }
  /// As fence_and_end.
  void fence() override;
  void end() override { fence(); }

 private:
  static constexpr std::size_t kLeasesMax = 64;

  tree::StoreCore& store_;
  fabric::RegionTable& regions_;
  const fabric::Domain domain_;
  const std::uint64_t session_;
  fabric::Registration region_;
  std::vector<base::LeaseId> leases_;
};

}  // namespace espalier::offload
