// SPDX-License-Identifier: Apache-2.0
// Read-ahead of leaves for remote scans: an access may read the leaves that follow before the scan
// reaches them, several in one doorbell.
//
// Which leaves follow is a hint, like all cached state (cached_way.hpp). A scan continues at the
// neighbour that its leaf names. If that leaf was read ahead, it is checked like any other leaf, at
// the read version taken before any of them was read; if the check fails, the walk continues as if
// nothing had been read ahead.
#pragma once

#include <concepts>
#include <cstdint>

#include "kinds/map/walk/cached_way.hpp"

namespace espalier::tree {

/// A leaf that was at least partly requested before the scan reached it.
struct LeafAhead {
  wire::Ref ref{};                   // its buffer; none: unknown
  const std::byte* image = nullptr;  // the whole leaf; null: not read
};

/// An access that reads leaves ahead. Beside RememberingAccess it provides:
///   want_ahead(cursor, bound, leaves)  requests, with the current wants, up to `leaves` leaves
///                                      that follow that of the cursor's key, in the direction of
///                                      the walk and up to this bound (null: none)
///   take_ahead(lid)                    what was read of this leaf; forgets the leaves before it in
///                                      the direction of the walk
///   seeks_above(cursor)                whether the leaves that follow are unknown only for lack of
///                                      the node above: the walk should then descend through it
///                                      instead of moving from leaf to leaf
template <class A>
concept AheadAccess = RememberingAccess<A> &&
    requires(A access, Cursor& cursor, const SearchKey* bound, std::uint32_t leaves,
             wire::Lid lid) {
  access.want_ahead(cursor, bound, leaves);
  { access.take_ahead(lid) } -> std::same_as<LeafAhead>;
  { access.seeks_above(cursor) } -> std::same_as<bool>;
};

}  // namespace espalier::tree
