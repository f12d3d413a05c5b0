// SPDX-License-Identifier: Apache-2.0
// Parses a node's answer to one_sided_open: where a map lies, and what READs by key need.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "espalier/error.hpp"
#include "fabric/types.hpp"
#include "kinds/map/format/map_place.hpp"
#include "kinds/map/format/mapping_feed.hpp"
#include "kinds/map/format/shard.hpp"
#include "kinds/map/walk/map_view.hpp"
#include "wire/one_sided.hpp"

namespace espalier::client {

struct OneSidedOpening {
  /// Access by READs that carry a key.
  struct Keyed {
    fabric::RegionKey key = 0;
    std::string prefix;  ///< shared prefix of all keys of the map
  };
  /// The key range of a shard.
  struct Borders {
    std::string low;
    std::string high;
    [[nodiscard]] wire::KeyBounds bounds() const { return {low, high}; }
  };

  /// Parses the fields; skips unknown kinds, and ignores excess bytes of known ones. Errors:
  /// corrupt (detail 1: a field is truncated or missing; 4: borders that no shard has).
  static Result<OneSidedOpening> read(std::string_view payload);
  /// The view of this map. Errors: corrupt (2: of another map, or without a lease), and those of
  /// MapView::read.
  [[nodiscard]] Result<tree::MapView> view_of(std::uint32_t map_id) const;

  wire::OfferedRegion region{};
  wire::MapPlace map{};
  wire::LeaseGrant lease{};
  std::optional<Keyed> keyed;                   ///< if requested
  std::optional<wire::RedirectPlace> redirect;  ///< if requested, for sessions that fill tables
  std::optional<Borders> borders;               ///< if the map is a shard
};

/// Parses a node's answer to feed_open: where the feed lies. FeedCursor validates the place.
/// Errors: corrupt (a field is truncated or missing).
[[nodiscard]] Result<wire::FeedPlace> read_feed_place(std::string_view payload);

/// Parses a node's answer to index_generation. Errors: as read_feed_place().
[[nodiscard]] Result<wire::RedirectPlace> read_redirect_place(std::string_view payload);

}  // namespace espalier::client
