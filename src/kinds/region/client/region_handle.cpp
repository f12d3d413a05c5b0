// SPDX-License-Identifier: Apache-2.0
#include "channel/public_call.hpp"
#include "espalier/region.hpp"
#include "kinds/region/client/regions.hpp"

namespace espalier {

using client::call;

const std::string& Region::name() const { return impl_->name(); }

std::uint64_t Region::bytes() const { return impl_->bytes(); }

Result<void> Region::read(std::uint64_t offset, std::span<std::byte> into) const {
  return call(*impl_, [&] { return impl_->read(offset, into); });
}

Result<void> Region::write(std::uint64_t offset, std::span<const std::byte> from) {
  return call(*impl_, [&] { return impl_->write(offset, from); });
}

Result<std::uint64_t> Region::fetch_add(std::uint64_t offset, std::uint64_t amount) {
  return call(*impl_, [&] { return impl_->fetch_add(offset, amount); });
}

Result<std::uint64_t> Region::compare_swap(std::uint64_t offset, std::uint64_t compare,
                                           std::uint64_t swap) {
  return call(*impl_, [&] { return impl_->compare_swap(offset, compare, swap); });
}

}  // namespace espalier
