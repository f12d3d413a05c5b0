// SPDX-License-Identifier: Apache-2.0
// Applies redo records (kinds/hash/redo_record.hpp) to a hash map, so that it becomes equal to the
// map that logged them.
//
// Guarantee: all items, exactly; versions only as bounds, as for ordered maps: an item has the
// version of the last record that wrote it or a later one, and the clock is at or above the version
// of every record. Records of one key are applied in order; then it does not matter whether some of
// them were applied before.
//
// Thread: that of the HashThread; one at a time for each map.
#pragma once

#include <memory>
#include <string_view>

#include "catalog/object_redo.hpp"
#include "kinds/hash/hash_map.hpp"

namespace espalier::hash {

/// Applies one record of arbitrary bytes; a dropped map ignores it. Cost: that of its write.
/// Errors: corrupt (detail: a catalog::RedoFault), and nothing was changed; those of its write.
/// Requires: the map makes no records; no other thread writes it.
Result<void> apply_redo(HashThread& thread, HashMap& map, std::string_view record);

/// Recreates a hash map from the record of its creation; null: there is nothing to create
/// (Catalog::restore). Errors: corrupt (detail: a catalog::RedoFault), and those of
/// create_hash_map().
Result<std::shared_ptr<HashMap>> restore_hash_map(HashStore& store,
                                                  const catalog::CreatedObject& created);

}  // namespace espalier::hash
