// SPDX-License-Identifier: Apache-2.0
// The maps of one endpoint that clients READ by key, with or without tables in switches: the prefix
// that most keys of such a map share, and the region keys for these READs (fabric/shared_map.hpp).
//
//   keyed key      one for all sessions, which are admitted to it one by one; a map that lies on
//                  several nodes has the same one on all of these, derived from its shard map's uid
//   redirect key   one for each generation of the tables that a session fills; revoked when no
//                  switch has these tables any more, or when the session ends or loses its lease:
//                  READs that old tables redirect there return zeros, and the client walks instead
//
// Thread: that of the endpoint's scheduler.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/endpoint_side.hpp"
#include "fabric/region_table.hpp"
#include "kinds/map/offload/index_reads.hpp"

namespace espalier::tree {
class MapCore;
struct StoreCore;
}  // namespace espalier::tree

namespace espalier::offload {

/// One map, as offered.
class IndexedMap {
 public:
  /// The prefix that key numbers omit.
  [[nodiscard]] const std::string& prefix() const { return prefix_; }
  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] fabric::RegionKey keyed_key() const { return keyed_.remote().key; }
  [[nodiscard]] fabric::SharedMap& shared() { return *shared_; }

 private:
  friend class IndexHost;

  std::weak_ptr<const tree::MapCore> map_;
  std::uint32_t id_ = 0;
  std::string prefix_;
  bool provisional_ = false;  // too few keys to determine a shared prefix
  std::shared_ptr<fabric::SharedMap> shared_;
  fabric::Registration keyed_;
};

class IndexHost final : public EndpointPart {
 public:
  /// The endpoint's, created on first use; null: its READs cannot carry keys.
  [[nodiscard]] static IndexHost* of(EndpointSide& endpoint);
  static constexpr std::size_t kMapsMax = 64;

  /// `counts`: as in MapReads; all outlive it.
  IndexHost(tree::StoreCore& store, fabric::RegionTable& regions, IndexReadCounts* counts = nullptr)
      : store_(store), regions_(regions), counts_(counts) {}

  /// Offers a map whose keys go from `low` to `high`; both empty: it has none. Its prefix is the
  /// one that most keys share (prefix_of_most.hpp). An existing offer stays while most keys have
  /// its prefix; else the map is offered anew, and sessions that opened it before keep the old
  /// offer.
  /// Errors: too_many_participants (kMapsMax maps; or of the store's epochs), out_of_memory.
  Result<std::shared_ptr<IndexedMap>> offer(const std::shared_ptr<tree::MapCore>& map,
                                            std::string_view low, std::string_view high);
  /// The region key of the map's current offer; 0: none.
  [[nodiscard]] fabric::RegionKey keyed_key(std::uint32_t map) const {
    const auto known = maps_.find(map);
    return known == maps_.end() ? 0 : known->second->keyed_key();
  }
  /// Creates a redirect key. Errors: out_of_memory, system.
  Result<fabric::Registration> offer_redirect(IndexedMap& map);
  /// Revokes a redirect key, and reserves it; does nothing if there is none. Cost: waits for
  /// accesses in progress.
  void retire(fabric::Registration redirect);

 private:
  /// Revoked keys that stay reserved because tables may still name them. Switches drop the tables
  /// of sessions that ended (dataplane/switch_control.hpp); tables installed from a file stay, and
  /// their READs are refused after this many further generations.
  static constexpr std::size_t kVoidKeysMax = 8192;

  Result<fabric::Registration> offer_keyed(const tree::MapCore& map,
                                           const std::shared_ptr<fabric::SharedMap>& shared);
  [[nodiscard]] std::string prefix_of(const tree::MapCore& map, std::string_view low,
                                      std::string_view high);

  tree::StoreCore& store_;
  fabric::RegionTable& regions_;
  IndexReadCounts* const counts_;
  std::unordered_map<std::uint32_t, std::shared_ptr<IndexedMap>> maps_;  // by id
  std::deque<fabric::Registration> void_keys_;
};

}  // namespace espalier::offload
