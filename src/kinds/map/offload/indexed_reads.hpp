// SPDX-License-Identifier: Apache-2.0
// What a session that reads maps by itself has of them besides the memory: the maps that it READs
// by key, those for which it fills the tables of switches, and those whose moves it is told.
//
// Thread: that of the client's scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/session_parts.hpp"
#include "fabric/region_table.hpp"

namespace espalier::tree {
class MapCore;
}
namespace espalier::wire {
struct FeedPlace;
}

namespace espalier::offload {

class Connection;
class IndexHost;
class IndexedMap;
class OneSidedHost;

class IndexedReads final : public SessionPart {
 public:
  /// The session's, made when first asked for. Requires: `host` is the session's.
  [[nodiscard]] static IndexedReads& of(Connection& connection, OneSidedHost& host);
  /// `regions`: of the endpoint. `index`: of the endpoint; null: no READ there can carry a key, for
  /// no switch is on its way. All outlive this.
  IndexedReads(OneSidedHost& host, fabric::RegionTable& regions, IndexHost* index)
      : host_(host), regions_(regions), index_(index) {}
  ~IndexedReads() override { fence(); }
  IndexedReads(const IndexedReads&) = delete;
  IndexedReads& operator=(const IndexedReads&) = delete;

  /// Null: none of its READs can carry a key.
  [[nodiscard]] IndexHost* index() { return index_; }
  /// Lets the session READ a map by key, until it is fenced. Requires: its memory was offered.
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
  /// Its redirect keys are void from then on, and it follows no map. Requires: the session's memory
  /// is revoked, for who is told nothing may read nothing.
  void fence() override;
  void end() override { fence(); }

 private:
  static constexpr std::size_t kIndexedMax = 64;
  static constexpr std::size_t kFollowedMax = 64;
  struct Redirect {
    std::shared_ptr<IndexedMap> map;
    fabric::Registration key;
    fabric::Registration before;  // of the generation before; may be none
  };
  /// Null: there is none.
  [[nodiscard]] Redirect* redirect_of(std::uint32_t map);

  OneSidedHost& host_;
  fabric::RegionTable& regions_;
  IndexHost* const index_;
  std::vector<std::shared_ptr<IndexedMap>> admitted_;  // which keep their keys for it
  std::vector<Redirect> redirects_;
  std::vector<std::weak_ptr<tree::MapCore>> followed_;
};

}  // namespace espalier::offload
