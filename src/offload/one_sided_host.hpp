// SPDX-License-Identifier: Apache-2.0
// What lets one client read the store's memory by itself: a registration of the region for its
// session alone, its leases, and the maps that it READs by key or fills tables for.
//
// Thread: that of the client's scheduler.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/lease_table.hpp"
#include "fabric/region_table.hpp"
#include "offload/index_host.hpp"
#include "tree/write/map_core.hpp"

namespace espalier::offload {

/// Ends leases of one session: revokes its key, which waits for accesses that began, and only then
/// leaves the leases out of what holds memory back (DESIGN §2.1 rule 4).
void fence_and_end(fabric::Registration& region, base::LeaseTable& leases,
                   std::vector<base::LeaseId>& held);

/// One session's. Ends its leases, after fencing it, when it ends.
class OneSidedHost {
 public:
  /// `domain`: of the session's queue pairs. `regions`: of the endpoint at which they are.
  /// `session`: its number, by which operators know it. `index`: of the endpoint; null: no READ
  /// there can carry a key, for no switch is on its way. It outlives this.
  OneSidedHost(tree::StoreCore& store, fabric::RegionTable& regions, fabric::Domain domain,
               std::uint64_t session, IndexHost* index = nullptr)
      : store_(store), regions_(regions), domain_(domain), session_(session), index_(index) {}
  ~OneSidedHost() { fence(); }
  OneSidedHost(const OneSidedHost&) = delete;
  OneSidedHost& operator=(const OneSidedHost&) = delete;

  /// Offers the region, if it is not offered already.
  /// Errors: unsupported (the node does not offer its memory), out_of_memory, system.
  Result<fabric::RemoteRegion> offer();
  /// Errors: out_of_memory (the session has too many leases).
  Result<base::LeaseTable::Granted> grant(std::uint64_t now_ns);
  /// Errors: as LeaseTable::renew; not_found for a lease that is not the session's.
  Result<std::uint64_t> renew(base::LeaseId lease, std::uint64_t oldest, std::uint64_t now_ns);
  /// On which leases are granted.
  [[nodiscard]] const base::LeaseTerms& terms() const { return store_.leases.terms(); }
  /// Null: none of its READs can carry a key.
  [[nodiscard]] IndexHost* index() { return index_; }
  /// Lets the session READ a map by key, until it is fenced. Requires: offer() has succeeded.
  Result<void> admit(const std::shared_ptr<IndexedMap>& map);
  /// The redirect key of the newest generation of tables that the session fills for a map.
  /// Requires: as admit(). Errors: out_of_memory (too many of them), system.
  Result<fabric::RemoteRegion> open_redirect(const std::shared_ptr<IndexedMap>& map);
  /// Another one, for the next generation. The one before stays good until the next begins, or
  /// end_generations_before(). Errors: not_found (there is none), out_of_memory, system.
  Result<fabric::RemoteRegion> begin_generation(std::uint32_t map);
  /// No switch has tables of generations before the newest: their keys are void from now on.
  /// Errors: not_found.
  Result<void> end_generations_before(std::uint32_t map);
  /// Has the map's changes told in its mapping feed, until the session is fenced. Asked again, it
  /// says the same. Errors: not_found (the session holds no lease); out_of_memory (too many maps,
  /// or no memory for the feed); too_many_participants (of the map's followers).
  Result<wire::FeedPlace> follow(const std::shared_ptr<tree::MapCore>& map);
  /// Its number: the owner of its leases.
  [[nodiscard]] std::uint64_t session() const { return session_; }
  /// As fence_and_end; and its redirect keys are void from then on, and it follows no map.
  void fence();

 private:
  static constexpr std::size_t kLeasesMax = 64;
  static constexpr std::size_t kIndexedMax = 64;
  static constexpr std::size_t kFollowedMax = 64;
  struct Redirect {
    std::shared_ptr<IndexedMap> map;
    fabric::Registration key;
    fabric::Registration before;  // of the generation before; may be none
  };
  /// Null: there is none.
  [[nodiscard]] Redirect* redirect_of(std::uint32_t map);

  tree::StoreCore& store_;
  fabric::RegionTable& regions_;
  fabric::Domain domain_;
  std::uint64_t session_;
  IndexHost* index_;
  fabric::Registration region_;
  std::vector<base::LeaseId> leases_;
  std::vector<std::shared_ptr<IndexedMap>> admitted_;  // which keep their keys for it
  std::vector<Redirect> redirects_;
  std::vector<std::weak_ptr<tree::MapCore>> followed_;
};

}  // namespace espalier::offload
