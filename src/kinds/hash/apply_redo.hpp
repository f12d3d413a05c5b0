// SPDX-License-Identifier: Apache-2.0
// Applying records to a hash map (kinds/hash/redo_record.hpp), so that it becomes what the one was
// that made them.
//
// What is kept: all items, exactly; and versions as bounds, as of ordered maps: an item has the
// version of the last record that wrote it or a later one, and the clock is at or above the version
// of every record. Records of one key are applied in their order; then it does not matter whether
// some of them were applied before.
//
// Thread: that of the HashThread; one at a time for each map.
#pragma once

#include <memory>
#include <string_view>

#include "catalog/object_redo.hpp"
#include "kinds/hash/hash_map.hpp"

namespace espalier::hash {

/// Applies a record, of any bytes; to a map that was dropped none. Cost: as its write.
/// Errors: corrupt (detail: a catalog::RedoFault), and nothing was changed; those of its write.
/// Requires: the map makes no records; no other thread writes it.
Result<void> apply_redo(HashThread& thread, HashMap& map, std::string_view record);

/// Makes a hash map again that a record tells of; null: there is nothing to make
/// (Catalog::restore). Errors: corrupt (detail: a catalog::RedoFault), and those of
/// create_hash_map().
Result<std::shared_ptr<HashMap>> restore_hash_map(HashStore& store,
                                                  const catalog::CreatedObject& created);

}  // namespace espalier::hash
