// SPDX-License-Identifier: Apache-2.0
// The links of an endpoint, each in a slot that the low bits of its number name. Completions of an
// earlier link of a slot that are left in the provider's queues match no link.
//
// Thread: that of its endpoint.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/ofi/provider_channel.hpp"

namespace espalier::fabric::ofi {

/// Links of an endpoint.
inline constexpr std::uint32_t kLinksMax = 1024;

class ChannelTable {
 public:
  /// A number for a link that put() is to take next; nothing: there are as many as there may be.
  std::optional<std::uint64_t> next_number() {
    std::size_t slot = 0;
    while (slot != links_.size() && links_[slot] != nullptr) ++slot;
    if (slot == kLinksMax) return {};
    return next_++ << kSlotBits | slot;
  }
  ProviderChannel& put(std::unique_ptr<ProviderChannel> link) {
    const std::size_t slot = slot_of(link->number());
    if (slot == links_.size()) links_.emplace_back();
    links_[slot] = std::move(link);
    return *links_[slot];
  }
  [[nodiscard]] ProviderChannel* find(std::uint64_t number) const {
    ProviderChannel* const link =
        slot_of(number) < links_.size() ? links_[slot_of(number)].get() : nullptr;
    return link != nullptr && link->number() == number ? link : nullptr;
  }
  void forget(const ProviderChannel& link) { links_[slot_of(link.number())].reset(); }

  /// At slots; null where there is none.
  [[nodiscard]] std::vector<std::unique_ptr<ProviderChannel>>& all() { return links_; }
  [[nodiscard]] const std::vector<std::unique_ptr<ProviderChannel>>& all() const { return links_; }
  [[nodiscard]] bool any() const {
    return std::any_of(links_.begin(), links_.end(),
                       [](const auto& link) { return link != nullptr; });
  }

 private:
  static constexpr std::uint64_t kSlotBits = 16;
  static_assert(kLinksMax <= std::uint64_t{1} << kSlotBits);
  [[nodiscard]] static std::size_t slot_of(std::uint64_t number) {
    return number % (std::uint64_t{1} << kSlotBits);
  }

  std::vector<std::unique_ptr<ProviderChannel>> links_;
  std::uint64_t next_ = 1;
};

}  // namespace espalier::fabric::ofi
