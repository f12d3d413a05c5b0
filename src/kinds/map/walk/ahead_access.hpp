// SPDX-License-Identifier: Apache-2.0
// What an access from elsewhere may do for scans that go over several leaves: bring the leaves that
// follow before the scan comes to them, several in one doorbell.
//
// Which leaves follow is a hint like all that is remembered (cached_way.hpp). A scan goes on to the
// neighbour that its leaf names. If that has come already, it is asked like any other leaf whether
// it may answer, at the read version that was taken before any of them was read; if not, the walk
// goes on as if nothing had been brought.
#pragma once

#include <concepts>
#include <cstdint>

#include "kinds/map/walk/cached_way.hpp"

namespace espalier::tree {

/// A leaf of which something was asked before the scan came to it.
struct LeafAhead {
  wire::Ref ref{};                   // where it is; none: not known
  const std::byte* image = nullptr;  // all of it; null: it has not been brought
};

/// An access that brings leaves ahead. It gives, besides what RememberingAccess does:
///   want_ahead(cursor, bound, leaves)  bring, with what is wanted now, up to so many of the leaves
///                                      that follow the one of the cursor's key, in the direction
///                                      of its walk and up to this bound (null: none)
///   take_ahead(lid)                    what has come of this leaf; those before it in the
///                                      direction of the walk are forgotten
///   seeks_above(cursor)                which leaves follow it could say if it knew the node above
///                                      that of the cursor's key: so the walk should go down there,
///                                      and not from leaf to leaf
template <class A>
concept AheadAccess = RememberingAccess<A> &&
    requires(A access, Cursor& cursor, const SearchKey* bound, std::uint32_t leaves,
             wire::Lid lid) {
  access.want_ahead(cursor, bound, leaves);
  { access.take_ahead(lid) } -> std::same_as<LeafAhead>;
  { access.seeks_above(cursor) } -> std::same_as<bool>;
};

}  // namespace espalier::tree
