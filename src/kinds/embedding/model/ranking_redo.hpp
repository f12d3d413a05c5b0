// SPDX-License-Identifier: Apache-2.0
// Recovers ranking models from their records. A model whose weights are not all in the log has
// none: its creation was never answered (docs/design/embedding.md).
//
// Thread: as engine/redo_target.hpp and engine/object_copy.hpp say.
#pragma once

#include <memory>
#include <string_view>

#include "catalog/object_redo.hpp"
#include "espalier/error.hpp"
#include "kinds/embedding/model/ranking.hpp"

namespace espalier::embedding {

/// Recreates a model from the record of its creation, without weights; null: there is nothing to
/// create (Catalog::restore). Errors: those of that; corrupt (its form is no head of a file).
Result<std::shared_ptr<RankingObject>> restore_ranking_model(catalog::Catalog& catalog,
                                                             const catalog::CreatedObject& created);

/// Applies a record of its weights. Ignores parts without those before, and those of a model that
/// has all of them. Cost: with the last part a copy of all weights.
/// Errors: corrupt (detail: a catalog::RedoFault), out_of_memory.
Result<void> apply_weights(RankingObject& model, memory::BufferPool& pool, std::string_view record);

}  // namespace espalier::embedding
