// SPDX-License-Identifier: Apache-2.0
// The hash maps of a store.
#include <utility>

#include "catalog/catalog.hpp"
#include "channel/objects.hpp"
#include "channel/public_call.hpp"
#include "client/store_impl.hpp"
#include "espalier/hash_map.hpp"
#include "kinds/hash/client/hash_maps.hpp"

namespace espalier {

Result<HashMap> Store::create_hash_map(std::string_view name, const HashMapOptions& options) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::invalid_argument);
  auto made = client::call(
      *impl_, [&] { return client::create_hash_map(impl_->channel(), name, options); });
  if (!made) return std::unexpected(made.error());
  return client::HashMapImpl::handle(std::move(*made));
}

Result<HashMap> Store::create_hash_map(std::string_view name) {
  return create_hash_map(name, HashMapOptions());
}

Result<HashMap> Store::open_hash_map(std::string_view name) const {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  auto opened = client::call(*impl_, [&] { return client::open_hash_map(impl_->channel(), name); });
  if (!opened) return std::unexpected(opened.error());
  return client::HashMapImpl::handle(std::move(*opened));
}

Result<void> Store::drop_hash_map(std::string_view name) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  return client::call(*impl_,
                      [&] { return channel::drop(*impl_->channel(), name, ObjectKind::hash); });
}

Result<std::vector<HashMapDescription>> Store::hash_maps() const {
  return client::call(*impl_, [&] { return client::list_hash_maps(*impl_->channel()); });
}

}  // namespace espalier
