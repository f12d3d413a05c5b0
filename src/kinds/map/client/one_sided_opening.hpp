// SPDX-License-Identifier: Apache-2.0
// What a node answers to one_sided_open, as a client reads it: where a map lies, and what READs of
// it may carry.
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
  /// READs of the map that carry a key.
  struct Keyed {
    fabric::RegionKey key = 0;
    std::string prefix;  ///< that all keys of the map began with
  };
  /// Of a shard: the keys that it has.
  struct Borders {
    std::string low;
    std::string high;
    [[nodiscard]] wire::KeyBounds bounds() const { return {low, high}; }
  };

  /// Reads the fields; those of kinds that are not known are skipped, and of what is longer than
  /// expected the begin counts. Errors: corrupt (detail 1: a field is cut or missing; 4: borders
  /// that no shard has).
  static Result<OneSidedOpening> read(std::string_view payload);
  /// The view of this map. Errors: corrupt (2: of another map, or there is no lease), and those of
  /// MapView::read.
  [[nodiscard]] Result<tree::MapView> view_of(std::uint32_t map_id) const;

  wire::OfferedRegion region{};
  wire::MapPlace map{};
  wire::LeaseGrant lease{};
  std::optional<Keyed> keyed;                   ///< where it was asked for
  std::optional<wire::RedirectPlace> redirect;  ///< likewise, for who fills tables
  std::optional<Borders> borders;               ///< where the map is a shard
};

/// What a node answers to feed_open: where the feed lies. Whether it can lie there, FeedCursor
/// looks.
/// Errors: corrupt (a field is cut or missing).
[[nodiscard]] Result<wire::FeedPlace> read_feed_place(std::string_view payload);

/// What a node answers to index_generation. Errors: as read_feed_place().
[[nodiscard]] Result<wire::RedirectPlace> read_redirect_place(std::string_view payload);

}  // namespace espalier::client
