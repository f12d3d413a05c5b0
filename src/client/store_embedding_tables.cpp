// SPDX-License-Identifier: Apache-2.0
// The embedding tables of a store.
#include <utility>

#include "catalog/catalog.hpp"
#include "channel/objects.hpp"
#include "channel/public_call.hpp"
#include "client/store_impl.hpp"
#include "espalier/embedding_table.hpp"
#include "kinds/embedding/client/embedding_tables.hpp"

namespace espalier {

using client::call;

Result<EmbeddingTable> Store::create_embedding_table(std::string_view name,
                                                     const EmbeddingOptions& options) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::invalid_argument);
  auto made = client::call(
      *impl_, [&] { return client::create_embedding_table(impl_->channel(), name, options); });
  if (!made) return std::unexpected(made.error());
  return client::EmbeddingTableImpl::handle(std::move(*made));
}

Result<EmbeddingTable> Store::open_embedding_table(std::string_view name) const {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  auto opened =
      client::call(*impl_, [&] { return client::open_embedding_table(impl_->channel(), name); });
  if (!opened) return std::unexpected(opened.error());
  return client::EmbeddingTableImpl::handle(std::move(*opened));
}

Result<void> Store::drop_embedding_table(std::string_view name) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  return client::call(
      *impl_, [&] { return channel::drop(*impl_->channel(), name, ObjectKind::embedding); });
}

Result<void> Store::rename_embedding_table(std::string_view name, std::string_view to,
                                           Displaced displaced) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  if (!catalog::Catalog::is_name(to) || to == name) return fail(Code::invalid_argument);
  return client::call(*impl_, [&] {
    return channel::rename(*impl_->channel(), name, to, ObjectKind::embedding, displaced);
  });
}

}  // namespace espalier
