// SPDX-License-Identifier: Apache-2.0
// The parts of a test's store; throws if they cannot be made.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "base/epoch.hpp"
#include "memory/region.hpp"
#include "store/store_core.hpp"

namespace espalier::test {

inline memory::Region reserve_region() {
  // A limit, not taken immediately.
  auto region = memory::Region::reserve({.bytes_max = std::uint64_t{1} << 30, .huge_pages = false});
  if (!region) throw std::runtime_error("no region: " + message(region.error()));
  return std::move(*region);
}

inline base::EpochSlot join_epochs(tree::StoreCore& store) {
  auto slot = store.epochs.join();
  if (!slot) throw std::runtime_error("no slot: " + message(slot.error()));
  return std::move(*slot);
}

}  // namespace espalier::test
