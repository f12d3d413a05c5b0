// SPDX-License-Identifier: Apache-2.0
#include "bench/add_points.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "bench/map_session.hpp"
#include "bench/noop_client.hpp"
#include "bench/own_node.hpp"
#include "espalier/hash_map.hpp"
#include "kinds/hash/calls.hpp"
#include "kinds/map/item_calls.hpp"
#include "wire/call_codec.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kSummed = "sum";

/// Keeps so many adds in flight until all are done.
void keep_adding(client::ThreadRings& lane, const wire::CallMessage& add, std::uint32_t in_flight,
                 std::uint64_t ops) {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  client::Incoming response;
  for (;;) {
    while (received < sent && lane.receive(response)) {
      if (response.header.code != 0) throw std::runtime_error("an add was refused");
      ++received;
    }
    if (received == ops) return;
    if (lane.lost()) throw std::runtime_error("the node is gone");
    bool sends = false;
    for (; sent < ops && sent - received < in_flight && lane.send(add, 1); ++sent) sends = true;
    if (sends) lane.ring();
    if (sent - received == std::min<std::uint64_t>(in_flight, ops - received) && !lane.wait()) {
      throw std::runtime_error("the node is gone");
    }
  }
}

/// Makes the map; returns its number.
std::uint32_t make_summed(node::Node& node, Store& store, ObjectKind kind) {
  if (kind == ObjectKind::map) {
    static_cast<void>(value_or_throw(store.create_map(kSummed), "cannot create a map"));
  } else {
    static_cast<void>(value_or_throw(store.create_hash_map(kSummed), "cannot create a hash map"));
  }
  return node.catalog().find_any(kSummed)->id;
}

std::uint64_t sum_of_adds(Store& store, ObjectKind kind) {
  return kind == ObjectKind::map
             ? value_or_throw(store.open_map(kSummed)->add("key", 0), "cannot add")
             : value_or_throw(store.open_hash_map(kSummed)->add("key", 0), "cannot add");
}

}  // namespace

PointSample measure_adds(const AddSetting& setting) {
  const base::TemporaryFolder place(setting.dir);
  node::Config config = own_node_config();
  if (setting.durability != Durability::none) {
    config.data.dir = (place / "data").string();
    config.data.durability = setting.durability;
  }
  const auto node = start_own_node(config);
  Store store = value_or_throw(Store::connect(local_address(*node)), "cannot connect");
  const std::uint32_t id = make_summed(*node, store, setting.kind);
  const auto lane = open_lane(local_address(*node));
  const map_calls::Add of_map{id, "key", 1};
  const hash_calls::Add of_hash{id, "key", 1};
  const wire::RequestMessage<map_calls::Add> to_map(of_map);
  const wire::RequestMessage<hash_calls::Add> to_hash(of_hash);
  const bool is_map = setting.kind == ObjectKind::map;
  const base::Stopwatch watch;
  keep_adding(*lane, is_map ? to_map.get() : to_hash.get(), setting.in_flight, setting.ops);
  PointSample sample;
  sample.took(setting.ops, static_cast<double>(watch.elapsed_ns()) / 1e9);
  sample.checksum = sum_of_adds(store, setting.kind);
  if (sample.checksum != setting.ops) throw std::runtime_error("an add is missing");
  return sample;
}

}  // namespace espalier::bench
