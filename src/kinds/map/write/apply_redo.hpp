// SPDX-License-Identifier: Apache-2.0
// Applies log records to a map (kinds/map/redo_record.hpp), to reproduce the map that made them.
//
// Reproduced are all items, exactly, and versions as bounds: an item has the version of the last
// record that wrote it or a later one, and the clock is at or above the version of every record, so
// a version that a client has received is never reused. Records of one key must be applied in
// order; reapplying some of them is harmless.
//
// A record of one write is applied like that write, with the memory that it needed: the records of
// a full store can be applied to a store of the same size.
//
// Thread: that of the context; one at a time for each map.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "espalier/error.hpp"
#include "kinds/map/write/map_core.hpp"

namespace espalier::tree {

struct ThreadContext;

/// A record of one write. Points into it.
struct SingleRedo {
  std::uint64_t version = 0;  // 0 for a map without versions
  std::string_view key;
  std::string_view value;
  bool erase = false;
};

/// Parses a record from untrusted bytes if it is one of this map that writes one key; nothing: a
/// valid record of another form. Errors: corrupt (detail: a catalog::RedoFault).
Result<std::optional<SingleRedo>> read_single_redo(const MapCore& map, std::string_view record);

/// Applies a record, which may be any bytes; does nothing to a dropped map. Cost: as its write, or
/// a batch of its writes; if earlier versions are missing, waits for the end of a release hold.
/// Errors: corrupt (detail: a catalog::RedoFault), with nothing changed; out_of_memory, with no
/// item changed.
/// Requires: the map has no sink for records; no other thread writes it; as apply_batch.
Result<void> apply_redo(ThreadContext& context, MapCore& map, std::string_view record);

}  // namespace espalier::tree
