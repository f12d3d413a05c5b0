// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/until_fork.hpp"
#include "catalog/catalog.hpp"
#include "channel/objects.hpp"
#include "channel/public_call.hpp"
#include "client/embedded_store.hpp"
#include "client/remote_store.hpp"
#include "espalier/offload.hpp"
#include "kinds/program/own_calls.hpp"

namespace espalier {

using client::or_out_of_memory;

void client::DeleteBehind::operator()(StoreImpl* impl) const noexcept { DeleteUnlessCopy()(impl); }

Store::Store(std::unique_ptr<client::StoreImpl> impl) : impl_(impl.release()) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::open(const StoreOptions& options) {
  auto impl = or_out_of_memory([&] { return client::EmbeddedStore::open(options); });
  if (!impl) return std::unexpected(impl.error());
  return Store(std::move(*impl));
}

Result<Store> Store::open(const StoreOptions& options, const Offloads& offloads) {
  return or_out_of_memory([&]() -> Result<Store> {
    if (!offloads.mistake().empty()) return fail(Code::invalid_argument);
    auto impl = client::EmbeddedStore::open(options);
    if (!impl) return std::unexpected(impl.error());
    auto& store = static_cast<client::EmbeddedStore&>(**impl);
    store.carry_out(std::make_shared<const program::OwnCalls>(offloads, store.limit_bytes()));
    return Store(std::move(*impl));
  });
}

Result<Store> Store::connect(std::string_view address, const StoreOptions& options) {
  if (address == "embedded") return open(options);
  auto impl = or_out_of_memory([&]() -> Result<std::unique_ptr<client::StoreImpl>> {
    const auto node = client::parse_node_address(address);
    if (!node) return std::unexpected(node.error());
    return client::RemoteStore::connect(*node, options);
  });
  if (!impl) return std::unexpected(impl.error());
  return Store(std::move(*impl));
}

std::string Store::explain_address(std::string_view address) {
  if (address == "embedded") return "";
  const auto node = client::parse_node_address(address);
  if (node) return "";
  std::string text = "'" + std::string(address) + "' is no address of a store. ";
  text += client::explain_node_address(node.error());
  const bool unknown = node.error().detail <= 1;  // not a valid address, or not one of the fabric
  return unknown ? text + " Or embedded, for a store in this process." : text;
}

Result<Map> Store::create_map(std::string_view name, const MapOptions& options) {
  const auto map = client::call(*impl_, [&] { return impl_->create_map(name, options); });
  if (!map) return std::unexpected(map.error());
  return Map(*map);
}

Result<Map> Store::open_map(std::string_view name) const {
  const auto map = client::call(*impl_, [&] { return impl_->open_map(name); });
  if (!map) return std::unexpected(map.error());
  return Map(*map);
}

Result<void> Store::drop_map(std::string_view name) {
  return client::call(*impl_, [&] { return impl_->drop_map(name); });
}

Result<std::vector<std::string>> Store::map_names() const {
  return client::call(*impl_, [&]() -> Result<std::vector<std::string>> {
    auto maps = channel::list(*impl_->channel(), ObjectKind::map);
    if (!maps) return std::unexpected(maps.error());
    std::vector<std::string> names;
    for (channel::ListedObject& map : *maps) names.push_back(std::move(map.name));
    return names;
  });
}

const std::string& Store::page_message() const { return impl_->page_message(); }

Result<std::uint64_t> Store::memory_bytes() const {
  return client::call(*impl_, [&] { return impl_->memory_bytes(); });
}

void Store::trim() {
  if (!impl_->is_copy()) impl_->trim();
}

}  // namespace espalier
