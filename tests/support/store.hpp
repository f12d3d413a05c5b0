// SPDX-License-Identifier: Apache-2.0
// Stores for tests: with ordinary pages, since many concurrent tests would compete for huge ones.
#pragma once

#include <stdexcept>
#include <utility>

#include "espalier/map.hpp"

namespace espalier::test {

/// Opens a store, or throws: without one there is no test.
inline Store open_store(StoreOptions options = {}) {
  options.huge_pages = false;
  auto store = Store::open(options);
  if (!store) throw std::runtime_error("no store: " + message(store.error()));
  return std::move(*store);
}

}  // namespace espalier::test
