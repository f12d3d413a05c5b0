// SPDX-License-Identifier: Apache-2.0
// What a call that opens or names an object waits for: the object's own records. The object exists
// even if records of other objects are lost; so after the log has failed, durable objects can still
// be opened (docs/design/durability.md).
//
// Thread: any.
#pragma once

#include <algorithm>
#include <cstdint>

#include "catalog/await_records.hpp"
#include "catalog/catalog.hpp"

namespace espalier::catalog {

/// The newest record that an answer about this object depends on: its creation, and its facts. Of a
/// dropped object, the catalogue's newest record. Requires: the caller read before what it will
/// answer.
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
