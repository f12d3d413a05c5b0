// SPDX-License-Identifier: Apache-2.0
// Maps out of their records.
#include <utility>

#include "catalog/apply_record.hpp"
#include "engine/redo_target.hpp"
#include "kinds/map/offload/map_copy.hpp"
#include "kinds/map/offload/map_offloads.hpp"
#include "kinds/map/write/apply_redo.hpp"
#include "kinds/map/write/map_object.hpp"
#include "store/store_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::offload {
namespace {

struct MapRedoPart final : RedoPart {
  MapRedoPart(tree::StoreCore& store, base::EpochSlot slot) : context(store, std::move(slot), 0) {}
  tree::ThreadContext context;
};

Result<void> restore_a_map(RedoTarget& target, const catalog::CreatedObject& created) {
  const auto made = tree::restore_map(target.services().store, created);
  return made ? Result<void>() : std::unexpected(made.error());
}

Result<void> apply_to_a_map(RedoTarget& target, const catalog::RedoHead& head,
                            std::string_view record) {
  tree::StoreCore& store = target.services().store;
  auto* part = target.find_part<MapRedoPart>();
  if (part == nullptr) {
    auto slot = store.epochs.join();
    if (!slot) return std::unexpected(slot.error());
    part = &target.part<MapRedoPart>(store, std::move(*slot));
  }
  return catalog::apply_to<tree::MapCore>(store.catalog, head.object, [&](tree::MapCore& map) {
    return tree::apply_redo(part->context, map, record);
  });
}

}  // namespace

const KindRedo kMapRedo{restore_a_map, apply_to_a_map, copy_a_map};

}  // namespace espalier::offload
