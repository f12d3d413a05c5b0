// SPDX-License-Identifier: Apache-2.0
// Durability of a store and of the objects made in it. In a store whose writes must be durable
// before readers see them, every object promises that, unless it is made with durability `none`.
#pragma once

#include <optional>

#include "base/durable_mark.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "espalier/error.hpp"
#include "espalier/kind.hpp"

namespace espalier::tree {

[[nodiscard]] inline bool must_be_durable(const catalog::Catalog& catalog) {
  catalog::RedoSink* const redo = catalog.redo();
  return redo != nullptr && redo->mark().is_of_records();
}

/// Whether writes to an object made with `own` must be durable before readers see them.
[[nodiscard]] inline bool must_be_durable(const catalog::Catalog& catalog,
                                          std::optional<Durability> own) {
  return own != Durability::none && must_be_durable(catalog);
}

/// The durability to make an object with, if it is to differ from the store's; nothing: the store's
/// promise. Errors: unsupported (durability asked for in a store without it; less than the store's
/// in a member of a chain).
[[nodiscard]] inline Result<std::optional<Durability>> agreed_durability(
    const catalog::Catalog& catalog, std::optional<Durability> asked) {
  if (!must_be_durable(catalog)) {
    if (asked.value_or(Durability::none) != Durability::none) return fail(Code::unsupported);
    return std::optional<Durability>();
  }
  const bool is_less = asked.value_or(Durability::sync) != Durability::sync;
  if (is_less && catalog.redo()->promise().age == nullptr) return fail(Code::unsupported);
  return asked;
}

}  // namespace espalier::tree
