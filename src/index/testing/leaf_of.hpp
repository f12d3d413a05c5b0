// SPDX-License-Identifier: Apache-2.0
// For tests: the leaf of a key, found by the host.
//
// Thread: that of the context.
#pragma once

#include <cstdint>
#include <string>

#include "kinds/map/testing/map_objects.hpp"
#include "kinds/map/walk/next_step.hpp"

namespace espalier::place {

/// The leaf of a key, at the newest released version.
inline wire::Ref leaf_ref_of(const tree::MapCore& map, tree::ThreadContext& context,
                             const std::string& key) {
  tree::Cursor cursor;
  cursor.key.assign(key);
  cursor.read_version = map.clock.released();
  context.slot.enter();
  const wire::Ref ref = tree::find_leaf(map, cursor, {});
  context.slot.exit();
  return ref;
}
/// Its offset in the store's region.
inline std::uint64_t leaf_offset_of(const tree::MapCore& map, tree::ThreadContext& context,
                                    const std::string& key) {
  return leaf_ref_of(map, context, key).offset();
}

}  // namespace espalier::place
