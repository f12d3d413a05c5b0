// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "client/answer.hpp"
#include "client/no_memory.hpp"

namespace espalier {

using client::or_out_of_memory;

Snapshot::Snapshot(std::unique_ptr<client::SnapshotImpl> impl) : impl_(std::move(impl)) {}
Snapshot::Snapshot(Snapshot&&) noexcept = default;
Snapshot& Snapshot::operator=(Snapshot&&) noexcept = default;
Snapshot::~Snapshot() = default;

Version Snapshot::version() const { return impl_->version(); }

Result<std::optional<Found>> Snapshot::get(std::string_view key) const {
  return or_out_of_memory([&] { return client::find(*impl_, Op::get, key); });
}

Result<std::optional<FoundItem>> Snapshot::floor(std::string_view key) const {
  return or_out_of_memory([&] { return client::find_item(*impl_, Op::floor, key); });
}

Result<std::uint64_t> Snapshot::scan(std::string_view low, std::string_view high,
                                     const ItemSink& sink, ScanOptions options) const {
  const auto request = client::scan_request(low, high, options);
  if (!request) return std::unexpected(request.error());
  return or_out_of_memory([&] { return client::run_scan(*impl_, *request, sink); });
}

Result<std::uint64_t> Snapshot::count(std::string_view low, std::string_view high) const {
  return or_out_of_memory([&] { return impl_->count(low, high); });
}

}  // namespace espalier
