// SPDX-License-Identifier: Apache-2.0
#include "engine/registry.hpp"

#include <algorithm>
#include <vector>

#include "base/assert.hpp"

namespace espalier::offload {
namespace {

std::vector<Offload> gather() {
  std::vector<Offload> all;
  for (const Kind& kind : all_kinds()) {
    for (const auto group : kind.calls) all.insert(all.end(), group.begin(), group.end());
  }
  std::ranges::sort(all, {}, &Offload::id);
  return all;
}

void add(OffloadTable& by_id, std::span<const Offload> more) {
  for (const Offload& offload : more) {
    const Offload*& place = by_id[static_cast<std::uint8_t>(offload.id)];
    ESPALIER_ASSERT(place == nullptr && offload.step != nullptr);
    // A call that needs no right is not checked against the prefix of the role.
    const bool names_object = offload.limits.map || offload.object != Names::nothing;
    ESPALIER_ASSERT(!names_object || offload.right != Right::none);
    // It finds the map before the first step.
    ESPALIER_ASSERT(!offload.limits.map || offload.executor != nullptr);
    place = &offload;
  }
}

OffloadTable index(std::span<const Offload> all) {
  OffloadTable by_id{};
  add(by_id, all);
  return by_id;
}

}  // namespace

std::span<const Offload> all_offloads() {
  static const std::vector<Offload> all = gather();
  return all;
}

const OffloadTable& offload_table() {
  static const OffloadTable by_id = index(all_offloads());
  return by_id;
}

OffloadTable offload_table_with(std::span<const Kind> own) {
  OffloadTable by_id = offload_table();
  for (const Kind& kind : own) {
    for (const auto group : kind.calls) {
      for (const Offload& offload : group) {
        ESPALIER_ASSERT(static_cast<std::uint8_t>(offload.id) >= wire::kOwnOffloadIds);
      }
      add(by_id, group);
    }
  }
  return by_id;
}

}  // namespace espalier::offload
