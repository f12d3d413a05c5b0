// SPDX-License-Identifier: Apache-2.0
// For tests: numbers of a node that nobody runs.
#pragma once

#include "node/metrics.hpp"

namespace espalier::node {

inline void add_places(NodeNumbers& numbers) {
  numbers.snapshots = {31, 32, 33, 34, 35, 36};
  numbers.connections = {41, 42, 43, 44, 45, 46, 47, 48, 49, 50};
  numbers.connects = {51, 52, 53, 54, 55, 56};
  numbers.principal_totals = {61, 62, 63, 64};
  numbers.principals = {{"secret alice", 71, 72, 73}};
}

inline void add_log(NodeNumbers& numbers) {
  numbers.log_failure = "log: file x, offset 4096";
  numbers.log = {.is_there = 1,
                 .durable = 81,
                 .handed_over = 82,
                 .bytes = 83,
                 .bytes_max = 84,
                 .failed = 1,
                 .failure_bytes = numbers.log_failure.size()};
  numbers.data = {91, 92, 93, 94, 9'500'000'000, 96, 97, 9'800'000'000};
}

inline void add_peer(NodeNumbers& numbers) {
  numbers.peers = {{"b",
                    {.links_up = 2,
                     .opened = 3,
                     .posts = 60,
                     .doorbells = 20,
                     .completions = 19,
                     .failures = 1}}};
}

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
  map.feed = {.entries = 21, .gaps = 22, .followers = 23};
  numbers.maps = {map};
  numbers.tables = {{"sales",
                     {.rows = 1000,
                      .pages = 2,
                      .row_bytes = 64,
                      .memory_bytes = 4'259'840,
                      .queries = {1, 2, 30, 4, 5},
                      .rows_read = 60'000,
                      .bytes_read = 3'840'000,
                      .rows_sent = 700,
                      .bytes_sent = 5'600}}};
  numbers.queries = {6, 7, 80, 9, 10};
  numbers.index_reads = {.resolved = 11, .leaves = 900, .interior = 12, .nothing = 13};
  numbers.helpers = {.threads = 3,
                     .ready = 4,
                     .running = 2,
                     .waiting = 1,
                     .steps = 500,
                     .long_steps = 5,
                     .longest_step_ns = 2'000'000,
                     .busy_ns = 1'500'000'000,
                     .refused = 12};
  numbers.access = {.denied = 21,
                    .authenticated = 22,
                    .wrong_proofs = 23,
                    .failed = 24,
                    .timed_out = 25,
                    .limited = 26,
                    .pending = 27,
                    .audit_left_out = 28};
  add_places(numbers);
  numbers.refused = 11;
  numbers.holders = {{memory::Holder::Kind::snapshot, "process 12", "default", 77, 8192},
                     {memory::Holder::Kind::lease, "session 3", "", 41, 4096}};
  add_peer(numbers);
  add_log(numbers);
  numbers.sequencer_count = 1;
  numbers.sequencers = {{"orders",
                         {.first = 100,
                          .next = 1234,
                          .requests = 50,
                          .adds = 40,
                          .epoch = 3,
                          .flags = wire::kSequencerIsSealed}}};
  return numbers;
}

}  // namespace espalier::node
