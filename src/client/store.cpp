// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>

#include "client/impl.hpp"

namespace espalier {
namespace client {
namespace {

std::uint64_t default_memory_bytes() {
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return pages * page_bytes / 4 * 3;
}

// The epoch table lies in the region's first extent.
constexpr std::uint32_t kParticipantsMax = 16384;
static_assert(base::EpochTable::bytes(kParticipantsMax) <= memory::kExtentBytes);

}  // namespace

StoreImpl::StoreImpl(memory::Region region, const StoreOptions& options)
    : core(std::move(region), options.participants_max),
      sessions(std::make_shared<SessionPool>(core)),
      page_message(core.region.page_message()) {}

StoreImpl::~StoreImpl() {
  sessions->close();
  maps.clear();
}

}  // namespace client

Store::Store(std::unique_ptr<client::StoreImpl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::open(const StoreOptions& options) {
  if (options.participants_max == 0 || options.participants_max > client::kParticipantsMax) {
    return fail(Code::invalid_argument, options.participants_max);
  }
  memory::RegionOptions region_options;
  region_options.bytes_max =
      options.memory_bytes_max != 0 ? options.memory_bytes_max : client::default_memory_bytes();
  region_options.huge_pages = options.huge_pages;
  auto region = memory::Region::reserve(region_options);
  if (!region) return std::unexpected(region.error());
  return Store(std::make_unique<client::StoreImpl>(std::move(*region), options));
}

Result<Map> Store::create_map(std::string_view name, const MapOptions& options) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->maps.contains(name)) return fail(Code::already_exists);
  auto core = tree::MapCore::create(impl_->core, impl_->next_map_id, std::string(name), options);
  if (!core) return std::unexpected(core.error());
  ++impl_->next_map_id;
  auto map = std::make_unique<client::MapImpl>(std::move(*core), impl_->sessions);
  const auto at = impl_->maps.emplace(std::string(name), std::move(map)).first;
  return Map(at->second.get());
}

Result<Map> Store::open_map(std::string_view name) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->maps.find(name);
  if (found == impl_->maps.end()) return fail(Code::not_found);
  return Map(found->second.get());
}

Result<void> Store::drop_map(std::string_view name) {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->maps.find(name);
  if (found == impl_->maps.end()) return fail(Code::not_found);
  impl_->sessions->forget(*found->second->core);
  impl_->maps.erase(found);
  return {};
}

std::vector<std::string> Store::map_names() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::string> names;
  for (const auto& [name, map] : impl_->maps) names.push_back(name);
  return names;
}

const std::string& Store::page_message() const { return impl_->page_message; }

std::uint64_t Store::memory_bytes() const { return impl_->core.region.taken_bytes(); }

void Store::trim() {
  if (const auto session = client::SessionLease::take(impl_->sessions)) {
    tree::Worker& worker = (*session)->worker;
    // The first round stamps what was waiting for its release, the next frees it.
    for (int round = 0; round < 3; ++round) impl_->core.reclaimer.collect(worker.cache);
    worker.cache.flush();
  }
  impl_->core.pool.trim();
}

}  // namespace espalier
