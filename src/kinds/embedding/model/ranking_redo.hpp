// SPDX-License-Identifier: Apache-2.0
// Ranking models out of their records, and such records of them. A model whose weights are not all
// told has none: its maker was never told that it is there (docs/design/embedding.md).
//
// Thread: as engine/redo_target.hpp and engine/object_copy.hpp say.
#pragma once

#include <memory>
#include <string_view>

#include "catalog/object_redo.hpp"
#include "espalier/error.hpp"
#include "kinds/embedding/model/ranking.hpp"

namespace espalier::embedding {

/// Makes one again that a record tells of, without weights; null: there is nothing to make
/// (Catalog::restore). Errors: those of that; corrupt (its form is no head of a file).
Result<std::shared_ptr<RankingObject>> restore_ranking_model(catalog::Catalog& catalog,
                                                             const catalog::CreatedObject& created);

/// Applies a record of its weights. Parts without those before are left out, as are those of a
/// model that has all of them. Cost: with the last part all weights are copied.
/// Errors: corrupt (detail: a catalog::RedoFault), out_of_memory.
Result<void> apply_weights(RankingObject& model, memory::BufferPool& pool, std::string_view record);

}  // namespace espalier::embedding
