// SPDX-License-Identifier: Apache-2.0
// The maps of which clients of one endpoint READ by key, with tables in switches on the way or
// without: what most keys of such a map begin with, and the keys of regions that go with it
// (fabric/shared_map.hpp).
//
//   keyed key      one for all sessions, which are admitted to it one by one; of a map that lies on
//                  several nodes one for all of these, made of the number of its shard map
//   redirect key   one for each generation of the tables that a session fills; when no switch has
//                  these any more, or the session has lost its lease or ends, the key is void:
//                  READs that old tables send there bring zeros, and whoever asked walks by himself
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

/// One map, as it is offered.
class IndexedMap {
 public:
  /// What the numbers of keys leave out.
  [[nodiscard]] const std::string& prefix() const { return prefix_; }
  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] fabric::RegionKey keyed_key() const { return keyed_.remote().key; }
  [[nodiscard]] fabric::SharedMap& shared() { return *shared_; }

 private:
  friend class IndexHost;

  std::weak_ptr<const tree::MapCore> map_;
  std::uint32_t id_ = 0;
  std::string prefix_;
  bool provisional_ = false;  // there were too few keys to tell what they share
  std::shared_ptr<fabric::SharedMap> shared_;
  fabric::Registration keyed_;
};

class IndexHost final : public EndpointPart {
 public:
  /// The endpoint's, made when first asked for; null: no READ there can carry a key.
  [[nodiscard]] static IndexHost* of(EndpointSide& endpoint);
  static constexpr std::size_t kMapsMax = 64;

  /// `counts`: as of MapReads; all outlive it.
  IndexHost(tree::StoreCore& store, fabric::RegionTable& regions, IndexReadCounts* counts = nullptr)
      : store_(store), regions_(regions), counts_(counts) {}

  /// A map whose keys go from `low` to `high`; both empty: it has none. Its prefix is what most
  /// keys begin with (prefix_of_most.hpp). What is offered already stays, as long as most keys
  /// begin with its prefix; else the map is offered anew, and those who opened it before keep what
  /// they have.
  /// Errors: too_many_participants (kMapsMax maps; or of the store's epochs), out_of_memory.
  Result<std::shared_ptr<IndexedMap>> offer(const std::shared_ptr<tree::MapCore>& map,
                                            std::string_view low, std::string_view high);
  /// Under which key the map is offered now; 0: it is not.
  [[nodiscard]] fabric::RegionKey keyed_key(std::uint32_t map) const {
    const auto known = maps_.find(map);
    return known == maps_.end() ? 0 : known->second->keyed_key();
  }
  /// A redirect key. Errors: out_of_memory, system.
  Result<fabric::Registration> offer_redirect(IndexedMap& map);
  /// Makes it void, and keeps it; nothing if there is none. Cost: a wait for accesses that go on.
  void retire(fabric::Registration redirect);

 private:
  /// Void keys that are kept for tables that still name them. Switches forget the tables of who is
  /// gone (dataplane/switch_control.hpp); those that were installed from a file stay, and when so
  /// many more generations have ended their READs are refused.
  static constexpr std::size_t kVoidKeysMax = 8192;

  Result<fabric::Registration> offer_keyed(const tree::MapCore& map,
                                           const std::shared_ptr<fabric::SharedMap>& shared);
  [[nodiscard]] std::string prefix_of(const tree::MapCore& map, std::string_view low,
                                      std::string_view high);

  tree::StoreCore& store_;
  fabric::RegionTable& regions_;
  IndexReadCounts* const counts_;
  std::unordered_map<std::uint32_t, std::shared_ptr<IndexedMap>> maps_;  // by their ids
  std::deque<fabric::Registration> void_keys_;
};

}  // namespace espalier::offload
