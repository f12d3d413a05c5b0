// SPDX-License-Identifier: Apache-2.0
// The ranking models of a store.
#include <utility>

#include "catalog/catalog.hpp"
#include "channel/objects.hpp"
#include "channel/public_call.hpp"
#include "client/store_impl.hpp"
#include "espalier/ranking_model.hpp"
#include "kinds/embedding/client/ranking_models.hpp"

namespace espalier {

using client::call;

std::expected<RankingModel, TableError> Store::create_ranking_model(std::string_view name,
                                                                    std::string_view file) {
  if (!catalog::Catalog::is_name(name)) {
    return std::unexpected(TableError(Error{Code::invalid_argument, 0, 0}));
  }
  auto made = client::call(
      *impl_, [&] { return client::create_ranking_model(impl_->channel(), name, file); });
  if (!made) return std::unexpected(made.error());
  return client::RankingModelImpl::handle(std::move(*made));
}

Result<RankingModel> Store::open_ranking_model(std::string_view name) const {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  auto opened =
      client::call(*impl_, [&] { return client::open_ranking_model(impl_->channel(), name); });
  if (!opened) return std::unexpected(opened.error());
  return client::RankingModelImpl::handle(std::move(*opened));
}

Result<void> Store::drop_ranking_model(std::string_view name) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  return client::call(*impl_,
                      [&] { return channel::drop(*impl_->channel(), name, ObjectKind::model); });
}

}  // namespace espalier
