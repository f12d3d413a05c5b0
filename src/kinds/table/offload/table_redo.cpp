// SPDX-License-Identifier: Apache-2.0
// Tables out of their records.
#include <string>
#include <vector>

#include "catalog/apply_record.hpp"
#include "catalog/redo_effect.hpp"
#include "engine/redo_target.hpp"
#include "kinds/table/apply_redo.hpp"
#include "kinds/table/audit.hpp"
#include "kinds/table/offload/table_copy.hpp"
#include "kinds/table/offload/table_offloads.hpp"
#include "kinds/table/redo_record.hpp"
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

Result<void> describe_table_rows(std::string_view record, const TakeEffect& take) {
  const auto head = catalog::read_redo_head(record, ObjectKind::table);
  if (!head) return std::unexpected(head.error());
  if (head->type == static_cast<std::uint8_t>(table::RedoType::reserved)) {
    const auto reserved = table::read_reserved(record);
    if (!reserved) return std::unexpected(reserved.error());
    const catalog::RedoNumber numbers[] = {{"rows_before", reserved->rows_before},
                                           {"next_cipher_page", reserved->next_cipher_page}};
    take({"reserve", std::nullopt, numbers});
    return {};
  }
  const auto appended = table::read_appended(record);
  if (!appended) return std::unexpected(appended.error());
  const table::AppendedRecord& fields = appended->fields;
  const catalog::RedoNumber numbers[] = {
      {"first_row", fields.first_row}, {"rows", fields.rows}, {"row_bytes", fields.row_bytes}};
  take({"append", std::nullopt, numbers});
  return {};
}

std::vector<std::string> audit_a_table(catalog::Object& object) {
  return table::audit(static_cast<table::Table&>(object));
}

}  // namespace

const KindRedo kTableRedo{.restore = restore_a_table,
                          .apply = apply_to_a_table,
                          .describe = describe_table_rows,
                          .audit = audit_a_table,
                          .copy = copy_a_table};

}  // namespace espalier::offload
