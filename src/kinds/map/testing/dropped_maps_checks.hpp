// SPDX-License-Identifier: Apache-2.0
// Invariants of dropped maps, as checks that tests run on a correct and on a broken store.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "kinds/map/write/map_core.hpp"
#include "kinds/map/write/map_object.hpp"
#include "memory/region.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {

/// A store with one map, and a check whether its root is intact.
class DroppedMapUnderTest {
 public:
  DroppedMapUnderTest() { map_ = *create_map(store, "name", {}); }

  /// Drops the map and releases the handle.
  void drop() {
    const wire::Ref root = map_->table.get(map_->root);
    root_offset_ = root.offset();
    static_cast<void>(store.catalog.drop("name"));
    map_.reset();
  }
  [[nodiscard]] bool freed() const {
    return base::load_plain<wire::BufferHeader>(store.region.at(root_offset_)).superseded == 0;
  }

  StoreCore store{std::move(*memory::Region::reserve(
                      {.bytes_max = std::uint64_t{64} << 20, .huge_pages = false})),
                  8};

 private:
  std::shared_ptr<MapCore> map_;
  std::uint64_t root_offset_ = 0;
};

/// Whether a dropped map stays for the lease granted before, and is freed when the lease ends.
inline bool waits_for_a_lease() {
  DroppedMapUnderTest under;
  const auto lease = under.store.leases.grant(1, 0);
  under.drop();
  const bool kept = !under.freed() && !under.store.dropped.due() && under.store.dropped.bytes() > 0;
  under.store.leases.end(lease.id);
  under.store.dropped.collect();
  return kept && under.freed() && under.store.dropped.size() == 0;
}

}  // namespace espalier::tree
