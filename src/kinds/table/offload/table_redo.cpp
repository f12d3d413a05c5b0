// SPDX-License-Identifier: Apache-2.0
// Tables out of their records.
#include "catalog/apply_record.hpp"
#include "engine/redo_target.hpp"
#include "kinds/table/apply_redo.hpp"
#include "kinds/table/offload/table_copy.hpp"
#include "kinds/table/offload/table_offloads.hpp"
#include "kinds/table/table_object.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

Result<void> restore_a_table(RedoTarget& target, const catalog::CreatedObject& created) {
  tree::StoreCore& store = target.services().store;
  const auto made = table::restore_table(store.catalog, store.pool, created);
  return made ? Result<void>() : std::unexpected(made.error());
}

Result<void> apply_to_a_table(RedoTarget& target, const catalog::RedoHead& head,
                              std::string_view record) {
  return catalog::apply_to<table::Table>(
      target.services().catalog(), head.object,
      [&](table::Table& table) { return table::apply_redo(table, record); });
}

}  // namespace

const KindRedo kTableRedo{restore_a_table, apply_to_a_table, copy_a_table};

}  // namespace espalier::offload
