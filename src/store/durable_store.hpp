// SPDX-License-Identifier: Apache-2.0
// Whether what is written to a store must be durable before others see it: then no object can be
// made in it of which readers see what a crash can lose, whoever makes it.
#pragma once

#include "base/durable_mark.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"

namespace espalier::tree {

[[nodiscard]] inline bool must_be_durable(const catalog::Catalog& catalog) {
  catalog::RedoSink* const redo = catalog.redo();
  return redo != nullptr && redo->mark().is_of_records();
}

}  // namespace espalier::tree
