// SPDX-License-Identifier: Apache-2.0
#include "fabric/landing_region.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "base/system_error.hpp"
#include "fabric/shared_copy.hpp"

namespace espalier::fabric {
namespace {}  // namespace

Result<LandingRegion> LandingRegion::create(RegionTable& regions, const Options& options) {
  if (options.bytes == 0 || options.bytes > kBytesMax) return fail(Code::invalid_argument);
  LandingRegion made;
  const auto memory = made.make(options);
  if (!memory) return std::unexpected(memory.error());
  auto region = regions.offer(*memory, RemoteRights::read | RemoteRights::write, options.domain);
  if (!region) return std::unexpected(region.error());
  made.region_ = std::move(*region);
  return made;
}

Result<OfferedMemory> LandingRegion::make(const Options& options) {
  const std::uint64_t bytes = base::round_up(options.bytes, kPageBytes);
  std::byte* at = nullptr;
  if (options.peer_maps_memory) {
    auto shared = memory::SharedMemory::create("espalier-landing", bytes);
    if (!shared) return std::unexpected(shared.error());
    shared_ = std::move(*shared);
    at = shared_.at(0);
  } else {
    auto own = memory::AddressRange::private_memory(bytes, false);
    if (!own) return std::unexpected(own.error());
    own_ = std::move(*own);
    if (!own_->open(0, bytes)) return base::refused_by_system();
    at = own_->base();
  }
  at_ = at;
  bytes_ = bytes;
  return OfferedMemory{at, bytes, shared_.descriptor(), 0};
}

LandingRegion& LandingRegion::operator=(LandingRegion&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  region_ = std::move(other.region_);
  own_ = std::exchange(other.own_, std::nullopt);
  shared_ = std::move(other.shared_);
  at_ = std::exchange(other.at_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

std::span<std::byte> LandingRegion::read_once(std::uint64_t offset,
                                              std::span<std::byte> into) const {
  if (offset >= bytes_) return into.first(0);
  const auto copied = into.first(std::min<std::uint64_t>(into.size(), bytes_ - offset));
  copy_from_shared(copied.data(), at_ + offset, copied.size());
  return copied;
}

void LandingRegion::give_back() {
  region_.revoke();
  bytes_ = 0;
  at_ = nullptr;
  own_.reset();
  // What a peer has mapped stays mapped there; of its pages none is kept for it.
  if (shared_) shared_.discard();
  shared_ = {};
}

}  // namespace espalier::fabric
