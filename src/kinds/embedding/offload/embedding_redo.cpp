// SPDX-License-Identifier: Apache-2.0
// Recovers embedding tables from their records.
#include <string>
#include <vector>

#include "catalog/apply_record.hpp"
#include "catalog/redo_effect.hpp"
#include "engine/redo_target.hpp"
#include "kinds/embedding/apply_redo.hpp"
#include "kinds/embedding/audit.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/offload/embedding_copy.hpp"
#include "kinds/embedding/offload/embedding_offloads.hpp"
#include "kinds/embedding/redo_record.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

Result<void> restore_an_embedding_table(RedoTarget& target, const catalog::CreatedObject& created) {
  tree::StoreCore& store = target.services().store;
  const auto made = embedding::restore_embedding_table(store.catalog, store.pool, created);
  return made ? Result<void>() : std::unexpected(made.error());
}

Result<void> apply_to_an_embedding_table(RedoTarget& target, const catalog::RedoHead& head,
                                         std::string_view record) {
  return catalog::apply_to<embedding::EmbeddingTable>(
      target.services().catalog(), head.object,
      [&](embedding::EmbeddingTable& table) { return embedding::apply_redo(table, record); });
}

Result<void> describe_embedding_rows(std::string_view record, const TakeEffect& take) {
  if (embedding::is_of_groups(record)) {
    const auto groups = embedding::read_groups_redo(record);
    if (!groups) return std::unexpected(groups.error());
    const catalog::RedoNumber numbers[] = {{"groups", groups->sizes.size()},
                                           {"rows", groups->rows},
                                           {"first", groups->first ? 1u : 0u},
                                           {"last", groups->last ? 1u : 0u}};
    take({"group", std::nullopt, numbers});
    return {};
  }
  const auto redo = embedding::read_rows_redo(record);
  if (!redo) return std::unexpected(redo.error());
  const bool appends = redo->type == embedding::RedoType::appended;
  const catalog::RedoNumber numbers[] = {
      {"first_row", redo->row}, {"rows", redo->rows}, {"row_bytes", redo->row_bytes}};
  take({appends ? "append" : "replace", std::nullopt, numbers});
  return {};
}

std::vector<std::string> audit_an_embedding_table(catalog::Object& object) {
  return embedding::audit(static_cast<embedding::EmbeddingTable&>(object));
}

}  // namespace

const KindRedo kEmbeddingRedo{.restore = restore_an_embedding_table,
                              .apply = apply_to_an_embedding_table,
                              .describe = describe_embedding_rows,
                              .audit = audit_an_embedding_table,
                              .copy = copy_an_embedding_table};

}  // namespace espalier::offload
