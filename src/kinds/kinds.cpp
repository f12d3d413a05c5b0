// SPDX-License-Identifier: Apache-2.0
// Registers a node's kinds: a new one adds its line here.
#include "engine/own_calls.hpp"
#include "kinds/embedding/offload/embedding_offloads.hpp"
#include "kinds/embedding/offload/model_offloads.hpp"
#include "kinds/hash/offload/hash_offloads.hpp"
#include "kinds/map/offload/map_offloads.hpp"
#include "kinds/map/offload/map_services.hpp"
#include "kinds/region/offload/region_offloads.hpp"
#include "kinds/sequencer/offload/sequencer_offloads.hpp"
#include "kinds/table/offload/table_offloads.hpp"
#include "kinds/table/offload/table_services.hpp"

namespace espalier::offload {
namespace {

template <class Part>
void make_part(TypedSlots<NodePart>& parts) {
  parts.make<Part>();
}

}  // namespace

std::span<const Kind> all_kinds() {
  static const std::span<const Offload> session[] = {session_offloads(), object_offloads(),
                                                     transaction_offloads(), node_offloads()};
  static const std::span<const Offload> map[] = {
      point_offloads(), range_offloads(), modify_offloads(),   batch_offloads(),
      map_offloads(),   shard_offloads(), one_sided_offloads()};
  static const std::span<const Offload> table[] = {table_offloads(),      query_offloads(),
                                                   table_read_offloads(), pipeline_offloads(),
                                                   landing_offloads(),    result_offloads()};
  static const std::span<const Offload> sequencer[] = {sequencer_offloads(), counter_offloads()};
  static const std::span<const Offload> hash[] = {hash_offloads()};
  static const std::span<const Offload> embedding[] = {embedding_offloads()};
  static const std::span<const Offload> model[] = {model_offloads()};
  static const std::span<const Offload> region[] = {region_offloads()};
  static const Kind kinds[] = {
      {"session", session, nullptr, nullptr, ObjectKind::any, &kNumberedClientsRedo},
      {"map", map, make_part<MapServices>, nullptr, ObjectKind::map, &kMapRedo},
      {"table", table, make_part<TableServices>, nullptr, ObjectKind::table, &kTableRedo},
      {"sequencer", sequencer, nullptr, nullptr, ObjectKind::sequencer, &kSequencerRedo},
      {"hash", hash, nullptr, nullptr, ObjectKind::hash, &kHashRedo},
      {"region", region, nullptr, nullptr, ObjectKind::region, &kRegionRedo},
      {"embedding", embedding, nullptr, nullptr, ObjectKind::embedding, &kEmbeddingRedo},
      {"model", model, nullptr, nullptr, ObjectKind::model, &kModelRedo}};
  return kinds;
}

}  // namespace espalier::offload
