// SPDX-License-Identifier: Apache-2.0
// Lets one client read the store's memory one-sided: a registration of the region for its session
// alone, and its leases.
//
// Thread: the client's scheduler's.
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

/// Ends leases of one session: revokes its key, which waits for accesses that have begun, and only
/// then releases the leases' hold on memory (DESIGN §2.1 rule 4).
void fence_and_end(fabric::Registration& region, base::LeaseTable& leases,
                   std::vector<base::LeaseId>& held);

/// The host of one session. When it ends, fences the session and ends its leases.
class OneSidedHost final : public SessionPart {
 public:
  /// The session's, created on first use; null: one-sided reads are not permitted.
  [[nodiscard]] static OneSidedHost* of(Connection& connection);
  /// `domain`: of the session's queue pairs. `regions`: of their endpoint. `session`: its number,
  /// for operators.
  OneSidedHost(tree::StoreCore& store, fabric::RegionTable& regions, fabric::Domain domain,
               std::uint64_t session)
      : store_(store), regions_(regions), domain_(domain), session_(session) {}
  ~OneSidedHost() override { fence(); }
  OneSidedHost(const OneSidedHost&) = delete;
  OneSidedHost& operator=(const OneSidedHost&) = delete;

  /// Registers the region, if it is not registered already. Errors: unsupported (the node does not
  /// offer its memory), out_of_memory, system.
  Result<fabric::RemoteRegion> offer();
  /// Errors: out_of_memory (the session has too many leases).
  Result<base::LeaseTable::Granted> grant(std::uint64_t now_ns);
  /// `oldest`: wire::LeaseRenewal. Returning a lease ends that lease alone, and keeps the key.
  /// Errors: as LeaseTable::renew; not_found for a lease that is not the session's.
  Result<std::uint64_t> renew(base::LeaseId lease, std::uint64_t oldest, std::uint64_t now_ns);
  /// The terms of its leases.
  [[nodiscard]] const base::LeaseTerms& terms() const;
  [[nodiscard]] bool has_leases() const { return !leases_.empty(); }
  /// The key of the region. Requires: offer() has succeeded, and no fence() followed.
  [[nodiscard]] fabric::RegionKey key() const {
    ESPALIER_ASSERT(region_);
    return region_.remote().key;
  }
  /// Its number, which owns its leases.
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
