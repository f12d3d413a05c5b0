// SPDX-License-Identifier: Apache-2.0
// Applies a record to a catalogue: the part that all kinds share.
#pragma once

#include <cstdint>
#include <string_view>

#include "catalog/catalog.hpp"
#include "catalog/object_redo.hpp"
#include "catalog/transaction_record.hpp"

namespace espalier::catalog {

/// Applies a record. `restore(created)` makes an object of its kind again; `apply(head, record)`
/// applies a record of a kind's own type, or of a client. Both return a Result.
template <class Restore, class Apply>
Result<void> apply_record(Catalog& catalog, std::string_view record, Restore&& restore,
                          Apply&& apply) {
  const auto done = [](const auto& result) {
    return result ? Result<void>() : std::unexpected(result.error());
  };
  const auto head = read_redo_head(record);
  if (!head) return done(head);
  if (head->type == static_cast<std::uint8_t>(RedoType::created)) {
    const auto created = read_created(record);
    return created ? done(restore(*created)) : done(created);
  }
  if (head->type == static_cast<std::uint8_t>(RedoType::dropped)) {
    const auto dropped = read_dropped(record);
    return dropped ? done(catalog.drop_again(*dropped)) : done(dropped);
  }
  if (head->type == static_cast<std::uint8_t>(RedoType::renamed)) {
    const auto renamed = read_renamed(record);
    return renamed ? done(catalog.rename_again(*renamed)) : done(renamed);
  }
  if (head->type == static_cast<std::uint8_t>(RedoType::transaction)) {
    if (head->object != 0) return corrupt(RedoFault::object);
    return for_each_record(record, [&](std::string_view own) -> Result<void> {
      const auto own_head = read_redo_head(own);
      return own_head ? done(apply(*own_head, own)) : done(own_head);
    });
  }
  return apply(*head, record);
}

/// Applies a record of a kind's own type to its object: `apply(object)`. Skips the record if the
/// object is gone: it was dropped later.
template <ObjectOfKind T, class Apply>
Result<void> apply_to(Catalog& catalog, std::uint32_t id, Apply&& apply) {
  const auto object = catalog.find<T>(id);
  return object == nullptr ? Result<void>() : apply(*object);
}

}  // namespace espalier::catalog
