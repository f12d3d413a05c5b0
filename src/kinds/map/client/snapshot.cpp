// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/until_fork.hpp"
#include "channel/public_call.hpp"
#include "kinds/map/client/answer.hpp"
#include "kinds/map/client/map_impl.hpp"

namespace espalier {

using client::call;

void client::DeleteBehind::operator()(SnapshotImpl* impl) const noexcept {
  DeleteUnlessCopy()(impl);
}

Snapshot::Snapshot(std::unique_ptr<client::SnapshotImpl> impl) : impl_(impl.release()) {}
Snapshot::Snapshot(Snapshot&&) noexcept = default;
Snapshot& Snapshot::operator=(Snapshot&&) noexcept = default;
Snapshot::~Snapshot() = default;

Version Snapshot::version() const { return impl_->version(); }

Result<std::optional<Found>> Snapshot::get(std::string_view key) const {
  return call(*impl_, [&] { return client::find(*impl_, Op::get, key); });
}

Result<std::optional<FoundItem>> Snapshot::floor(std::string_view key) const {
  return call(*impl_, [&] { return client::find_item(*impl_, Op::floor, key); });
}

Result<std::uint64_t> Snapshot::scan(std::string_view low, std::string_view high,
                                     const ItemSink& sink, ScanOptions options) const {
  const auto request = client::scan_request(low, high, options);
  if (!request) return std::unexpected(request.error());
  return call(*impl_, [&] { return client::run_scan(*impl_, *request, sink, options.parts); });
}

Result<std::uint64_t> Snapshot::count(std::string_view low, std::string_view high) const {
  return call(*impl_, [&] { return impl_->count(low, high); });
}

}  // namespace espalier
