// SPDX-License-Identifier: Apache-2.0
// The regions of a store.
#include <utility>

#include "catalog/catalog.hpp"
#include "channel/objects.hpp"
#include "channel/public_call.hpp"
#include "client/store_impl.hpp"
#include "espalier/region.hpp"
#include "kinds/region/client/regions.hpp"

namespace espalier {

using client::call;

Result<Region> Store::create_region(std::string_view name, std::uint64_t bytes) {
  if (!catalog::Catalog::is_name(name) || bytes == 0) return fail(Code::invalid_argument);
  auto made =
      client::call(*impl_, [&] { return client::create_region(impl_->channel(), name, bytes); });
  if (!made) return std::unexpected(made.error());
  return client::RegionImpl::handle(std::move(*made));
}

Result<Region> Store::open_region(std::string_view name) const {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  auto opened = client::call(*impl_, [&] { return client::open_region(impl_->channel(), name); });
  if (!opened) return std::unexpected(opened.error());
  return client::RegionImpl::handle(std::move(*opened));
}

Result<void> Store::drop_region(std::string_view name) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  return client::call(*impl_,
                      [&] { return channel::drop(*impl_->channel(), name, ObjectKind::region); });
}

Result<std::vector<RegionDescription>> Store::regions() const {
  return client::call(*impl_, [&] { return client::list_regions(*impl_->channel()); });
}

}  // namespace espalier
