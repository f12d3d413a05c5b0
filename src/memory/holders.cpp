// SPDX-License-Identifier: Apache-2.0
#include "memory/holders.hpp"

#include <algorithm>
#include <utility>

#include "memory/reclaimer.hpp"

namespace espalier::memory {

const char* name_of(Holder::Kind kind) {
  switch (kind) {
    case Holder::Kind::epoch: return "epoch";
    case Holder::Kind::lease: return "lease";
    case Holder::Kind::snapshot: return "snapshot";
    case Holder::Kind::invalid: break;
  }
  return "unknown";
}

std::vector<Holder> Reclaimer::holders(
    const std::function<std::uint64_t(std::uint64_t epoch)>& others, std::size_t most) const {
  std::vector<Holder> holders = snapshot_holders();
  const auto leases = leases_->holders();
  const auto readers = epochs_.exposed();
  std::vector<std::uint64_t> epochs;
  for (const auto& lease : leases) epochs.push_back(lease.epoch);
  for (const auto& reader : readers) epochs.push_back(reader.epoch);
  std::ranges::sort(epochs);
  epochs.erase(std::unique(epochs.begin(), epochs.end()), epochs.end());
  const std::vector<std::uint64_t> held = bytes_held_since(epochs);
  const auto bytes_of = [&](std::uint64_t epoch) {
    return held[static_cast<std::size_t>(std::ranges::lower_bound(epochs, epoch) - epochs.begin())];
  };
  for (const auto& lease : leases) {
    const std::uint64_t bytes = bytes_of(lease.epoch) + others(lease.epoch);
    holders.push_back(
        {Holder::Kind::lease, "session " + std::to_string(lease.owner), {}, lease.epoch, bytes});
  }
  for (const auto& reader : readers) {
    const std::uint64_t bytes = bytes_of(reader.epoch);
    if (bytes == 0) continue;
    holders.push_back({Holder::Kind::epoch,
                       "process " + std::to_string(reader.process),
                       {},
                       reader.epoch,
                       bytes});
  }
  std::ranges::sort(holders, [](const Holder& a, const Holder& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.owner < b.owner;
  });
  if (holders.size() > most) holders.resize(most);
  return holders;
}

}  // namespace espalier::memory
