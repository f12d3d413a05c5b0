// SPDX-License-Identifier: Apache-2.0
// Embedding tables out of their records.
#include "catalog/apply_record.hpp"
#include "engine/redo_target.hpp"
#include "kinds/embedding/apply_redo.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/offload/embedding_offloads.hpp"
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

}  // namespace

const KindRedo kEmbeddingRedo{restore_an_embedding_table, apply_to_an_embedding_table};

}  // namespace espalier::offload
