// SPDX-License-Identifier: Apache-2.0
// For tests: numbers of a node that nobody runs.
#pragma once

#include "node/metrics.hpp"

namespace espalier::node {

inline NodeNumbers some_numbers() {
  NodeNumbers numbers;
  numbers.version = "1.2.3";
  numbers.start_time_seconds = 1'700'000'000.25;
  OffloadNumbers get;
  get.id = wire::OffloadId::get;
  get.name = "get";
  get.requests = 640;
  get.durations.buckets[0] = 7;
  get.durations.buckets[2] = 2;
  get.durations.buckets.back() = 1;
  get.durations.sum_ns = 20'000'002'500;
  OffloadNumbers noop;
  noop.id = wire::OffloadId::noop;
  noop.name = "noop";
  numbers.offloads = {get, noop};
  numbers.workers = {{.in_flight = 3, .connections = 2, .sleeps = 10, .wake_ups = 9},
                     {.in_flight = 0, .connections = 1, .sleeps = 5, .wake_ups = 4}};
  MapNumbers map;
  map.name = "default";
  map.stats.items = std::uint64_t{1} << 60;
  map.stats.height = 3;
  numbers.maps = {map};
  numbers.refused = 11;
  numbers.holders = {{tree::Holder::Kind::snapshot, "process 12", "default", 77, 8192},
                     {tree::Holder::Kind::lease, "session 3", "", 41, 4096}};
  return numbers;
}

}  // namespace espalier::node
