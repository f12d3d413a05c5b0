// SPDX-License-Identifier: Apache-2.0
#include "offload/registry.hpp"

#include <algorithm>
#include <vector>

#include "base/assert.hpp"
#include "offload/map_services.hpp"
#include "offload/sequencer_services.hpp"
#include "offload/table_services.hpp"

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
    // Who needs no right is not asked which objects its role is for.
    const bool names_object = offload.limits.map || offload.object != Names::nothing;
    ESPALIER_ASSERT(!names_object || offload.right != Right::none);
    // By which the map is found before the first step.
    ESPALIER_ASSERT(!offload.limits.map || offload.executor != nullptr);
    place = &offload;
  }
}

OffloadTable index(std::span<const Offload> all) {
  OffloadTable by_id{};
  add(by_id, all);
  return by_id;
}

template <class Part>
void make_part(TypedSlots<NodePart>& parts) {
  parts.make<Part>();
}

}  // namespace

std::span<const Kind> all_kinds() {
  static const std::span<const Offload> session[] = {session_offloads(), object_offloads(),
                                                     node_offloads()};
  static const std::span<const Offload> map[] = {
      point_offloads(), range_offloads(), modify_offloads(),   batch_offloads(),
      map_offloads(),   shard_offloads(), one_sided_offloads()};
  static const std::span<const Offload> table[] = {table_offloads(),      query_offloads(),
                                                   table_read_offloads(), pipeline_offloads(),
                                                   landing_offloads(),    result_offloads()};
  static const std::span<const Offload> sequencer[] = {sequencer_offloads(), counter_offloads()};
  static const Kind kinds[] = {{"session", session, nullptr},
                               {"map", map, make_part<MapServices>},
                               {"table", table, make_part<TableServices>},
                               {"sequencer", sequencer, make_part<SequencerServices>}};
  return kinds;
}

std::span<const Offload> all_offloads() {
  static const std::vector<Offload> all = gather();
  return all;
}

const OffloadTable& offload_table() {
  static const OffloadTable by_id = index(all_offloads());
  return by_id;
}

OffloadTable offload_table_with(std::span<const Offload> own) {
  OffloadTable by_id = offload_table();
  for (const Offload& offload : own) {
    ESPALIER_ASSERT(static_cast<std::uint8_t>(offload.id) >= wire::kOwnOffloadIds);
  }
  add(by_id, own);
  return by_id;
}

}  // namespace espalier::offload
