// SPDX-License-Identifier: Apache-2.0
// What one that opens an object, or names it, waits for: the object's own records. Those of others
// may be lost, and it is there all the same, so after the log has failed what is durable can still
// be opened (docs/design/durability.md).
//
// Thread: any.
#pragma once

#include <algorithm>
#include <cstdint>

#include "catalog/await_records.hpp"
#include "catalog/catalog.hpp"

namespace espalier::catalog {

/// The newest record of what is told of this object: that it was made, and its facts. Of one that
/// was dropped since, that of the catalogue. Requires: what is told was read before.
[[nodiscard]] inline std::uint64_t record_of_object(const Catalog& catalog, std::uint32_t id) {
  const EntryPointer entry = catalog.find_any(id);
  return entry != nullptr ? std::max(entry->created, entry->object->told_in()) : catalog.recorded();
}

/// Waits until that record is durable. Cost, errors: as await_record().
[[nodiscard]] inline Result<void> await_opened(const Catalog& catalog, std::uint32_t id) {
  RedoSink* const sink = catalog.redo();
  return sink == nullptr ? Result<void>() : await_record(sink, record_of_object(catalog, id));
}

}  // namespace espalier::catalog
