// SPDX-License-Identifier: Apache-2.0
#include "channel/public_call.hpp"
#include "espalier/ranking_model.hpp"
#include "kinds/embedding/client/ranking_models.hpp"

namespace espalier {

using client::call;

const std::string& RankingModel::name() const { return impl_->name(); }

const RankingShape& RankingModel::shape() const { return impl_->shape; }

TableResult<std::vector<float>> RankingModel::infer(const RankingQueries& queries) const {
  return call(*impl_, [&] { return impl_->infer(queries); });
}

TableResult<std::vector<float>> RankingModel::infer_text(std::string_view queries) const {
  return call(*impl_, [&] { return impl_->infer_text(queries); });
}

}  // namespace espalier
