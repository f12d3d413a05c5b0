// SPDX-License-Identifier: Apache-2.0
// What a session with one-sided access has besides the memory: the maps that it READs by key, those
// whose tables in switches it fills, and those whose mapping feed it follows.
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
  /// The session's, created on first use. Requires: `host` is the session's.
  [[nodiscard]] static IndexedReads& of(Connection& connection, OneSidedHost& host);
  /// `regions`, `index`: of the endpoint. `index` null: READs there cannot carry keys, since no
  /// switch is on the path. All outlive this.
  IndexedReads(OneSidedHost& host, fabric::RegionTable& regions, IndexHost* index)
      : host_(host), regions_(regions), index_(index) {}
  ~IndexedReads() override { fence(); }
  IndexedReads(const IndexedReads&) = delete;
  IndexedReads& operator=(const IndexedReads&) = delete;

  /// Null: its READs cannot carry keys.
  [[nodiscard]] IndexHost* index() { return index_; }
  /// Admits the session to READs of a map by key, until fence(). Requires: its memory was offered.
  Result<void> admit(const std::shared_ptr<IndexedMap>& map);
  /// The redirect key of the newest generation of tables that the session fills for a map.
  /// Requires: as admit(). Errors: out_of_memory (too many of them), system.
  Result<fabric::RemoteRegion> open_redirect(const std::shared_ptr<IndexedMap>& map);
  /// Creates the redirect key of the next generation. The previous one stays valid until a further
  /// generation begins, or end_generations_before(). Errors: not_found (no generation),
  /// out_of_memory, system.
  Result<fabric::RemoteRegion> begin_generation(std::uint32_t map);
  /// Revokes the keys of all generations before the newest: no switch has their tables any more.
  /// Errors: not_found.
  Result<void> end_generations_before(std::uint32_t map);
  /// Publishes the map's changes to its mapping feed, until fence(). Idempotent. Errors: not_found
  /// (the session holds no lease); out_of_memory (too many maps, or no memory for the feed);
  /// too_many_participants (of the map's followers).
  Result<wire::FeedPlace> follow(const std::shared_ptr<tree::MapCore>& map);
  /// Revokes its redirect keys, and unfollows all maps. Requires: the session's memory is revoked,
  /// since a session that no feed informs must not read.
  void fence() override;
  void end() override { fence(); }

 private:
  static constexpr std::size_t kIndexedMax = 64;
  static constexpr std::size_t kFollowedMax = 64;
  struct Redirect {
    std::shared_ptr<IndexedMap> map;
    fabric::Registration key;
    fabric::Registration before;  // of the previous generation; may be none
  };
  /// Null: none.
  [[nodiscard]] Redirect* redirect_of(std::uint32_t map);

  OneSidedHost& host_;
  fabric::RegionTable& regions_;
  IndexHost* const index_;
  std::vector<std::shared_ptr<IndexedMap>> admitted_;  // keeps their region keys alive
  std::vector<Redirect> redirects_;
  std::vector<std::weak_ptr<tree::MapCore>> followed_;
};

}  // namespace espalier::offload
