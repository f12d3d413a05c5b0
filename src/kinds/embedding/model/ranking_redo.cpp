// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/model/ranking_redo.hpp"

#include <string>
#include <utility>

#include "kinds/embedding/model/dense.hpp"
#include "kinds/embedding/model/model_redo.hpp"

namespace espalier::embedding {

using catalog::RedoFault;

Result<std::shared_ptr<RankingObject>> restore_ranking_model(
    catalog::Catalog& catalog, const catalog::CreatedObject& created) {
  auto plan = read_model_head(created.form);
  if (!plan || plan->floats_at != created.form.size()) return catalog::corrupt(RedoFault::form);
  return catalog.restore<RankingObject>(
      created,
      [&](std::uint32_t id, std::string own_name) -> Result<std::shared_ptr<RankingObject>> {
        return std::make_shared<RankingObject>(id, std::move(own_name), *std::move(plan), nullptr);
      });
}

Result<void> apply_weights(RankingObject& model, memory::BufferPool& pool,
                           std::string_view record) {
  const auto redo = read_weights_redo(record);
  if (!redo) return std::unexpected(redo.error());
  if (redo->model != model.id()) return catalog::corrupt(RedoFault::object);
  if (model.dropped() || model.has_weights()) return {};
  const ModelPlan& plan = model.plan();
  std::string& file = model.told_file();
  // The first parts precede the checkpoint, which then has all of them.
  if (file.empty() && redo->first != 0) return {};
  // The head is not parsed again.
  if (file.empty() || redo->first == 0) file.assign(plan.floats_at, '\0');
  if (redo->first != (file.size() - plan.floats_at) / sizeof(float)) {
    return catalog::corrupt(RedoFault::place);
  }
  if (redo->bytes.size() > plan.file_bytes() - file.size()) {
    return catalog::corrupt(RedoFault::count);
  }
  file += redo->bytes;
  if (file.size() < plan.file_bytes()) return {};
  auto weights = ModelWeights::create(pool, plan, file, dense_kit());
  if (!weights) return std::unexpected(weights.error());
  (*weights)->belong_to(model.id());
  model.set_weights(std::move(*weights));
  std::string().swap(file);  // tens of MiB
  return {};
}

}  // namespace espalier::embedding
