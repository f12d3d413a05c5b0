// SPDX-License-Identifier: Apache-2.0
// Whether what is written to a store must be durable before others see it: then no object can be
// made in it of which readers see what a crash can lose, whoever makes it; but one of which it is
// said that a crash may lose it.
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

/// The same of an object that is made with this.
[[nodiscard]] inline bool must_be_durable(const catalog::Catalog& catalog,
                                          std::optional<Durability> own) {
  return own != Durability::none && must_be_durable(catalog);
}

/// What an object of this store can be made with; nothing: what the store promises of all.
/// Errors: unsupported (it is asked to be durable, in a store that is not; to be less so than its
/// store's other objects, in a member of a chain).
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
