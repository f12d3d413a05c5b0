// SPDX-License-Identifier: Apache-2.0
// For tests: numbers of a node that does not run.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "node/metrics.hpp"

namespace espalier::node {

struct SetNumber {
  std::string_view name;
  std::uint64_t value;
  std::string_view label_value{};
};

inline void set(NodeNumbers& numbers, std::initializer_list<SetNumber> all) {
  for (const SetNumber& one : all) numbers.set(one.name, one.value, one.label_value);
}

inline void add_places(NodeNumbers& numbers) {
  set(numbers, {{"snapshots", 31},
                {"snapshot_bytes", 32},
                {"snapshot_limit_bytes", 33},
                {"snapshots_expired", 34},
                {"principal_snapshots_limit", 35},
                {"connection_snapshots_limit", 36},
                {"connections_limit", 41},
                {"principal_connections_limit", 42},
                {"connections_limited", 43},
                {"pending_connections", 44},
                {"ring_bytes", 45},
                {"ring_limit_bytes", 46},
                {"principal_ring_limit_bytes", 47},
                {"connections_kept", 48},
                {"pending_connections_limit", 49},
                {"user_pending_connections_limit", 50},
                {"connection_cookies", 51, "sent"},
                {"connection_cookies", 52, "accepted"},
                {"connection_cookies", 53, "refused"},
                {"connection_messages_shed", 54},
                {"packets_dropped", 55, "foreign"},
                {"packets_dropped", 56, "out_of_window"},
                {"principals", 61},
                {"principal_connections_most", 62},
                {"principal_ring_bytes_most", 63},
                {"principal_snapshots_most", 64}});
  numbers.principals = {{"secret alice", 71, 72, 73}};
}

inline void add_access(NodeNumbers& numbers) {
  set(numbers, {{"requests_denied", 21},
                {"authentications", 22, "accepted"},
                {"authentications", 23, "wrong_proof"},
                {"authentications", 24, "failed"},
                {"authentications", 25, "timed_out"},
                {"authentications", 26, "limited"},
                {"pending_peers", 27},
                {"audit_left_out", 28}});
}

inline void add_log(NodeNumbers& numbers) {
  numbers.log_failure = "log: file x, offset 4096";
  set(numbers, {{"log_durable_sequence", 81},
                {"log_handed_over_sequence", 82},
                {"log_bytes", 83},
                {"log_limit_bytes", 84},
                {"log_failed", 1},
                {"checkpoints", 91},
                {"checkpoints_failed", 92},
                {"checkpoint_last_records", 93},
                {"checkpoint_last_bytes", 94},
                {"checkpoint_last_nanoseconds", 9'500'000'000},
                {"recovered_records", 96},
                {"recovered_bytes", 97},
                {"recovery_expected_bytes", 99},
                {"recovery_nanoseconds", 9'800'000'000}});
}

inline void add_work(NodeNumbers& numbers) {
  set(numbers, {{"queries_running", 6},
                {"queries_waiting", 7},
                {"queries_ended", 80},
                {"queries_failed", 9},
                {"queries_refused", 10},
                {"index_reads", 11, "no_table"},
                {"index_reads", 900, "leaf"},
                {"index_reads", 12, "interior_node"},
                {"index_reads", 13, "nothing"},
                {"helper_threads", 3},
                {"helper_jobs", 4, "ready"},
                {"helper_jobs", 2, "running"},
                {"helper_jobs", 1, "waiting"},
                {"helper_steps", 500},
                {"helper_long_steps", 5},
                {"helper_longest_step_nanoseconds", 2'000'000},
                {"helper_busy_nanoseconds", 1'500'000'000},
                {"helper_jobs_refused", 12},
                {"requests_refused", 11}});
}

inline void add_peer(NodeNumbers& numbers) {
  numbers.peers = {{"b",
                    {.links_up = 2,
                     .opened = 3,
                     .posts = 60,
                     .doorbells = 20,
                     .completions = 19,
                     .failures = 1,
                     .calls = 5,
                     .calls_failed = 4}}};
}

/// One whose samples are gauges.
inline wire::SampledObject object_of(
    ObjectKind kind, std::uint32_t id, std::string object_name,
    std::initializer_list<std::pair<std::string_view, std::uint64_t>> values) {
  wire::SampledObject object{kind, std::string(name(kind)), id, std::move(object_name), {}};
  for (const auto& [sample, value] : values) {
    object.samples.push_back({std::string(sample),
                              sample.ends_with("_bytes") ? "bytes" : "",
                              "Help.",
                              wire::SampleType::gauge,
                              {},
                              value});
  }
  return object;
}

inline void add_objects(NodeNumbers& numbers) {
  set(numbers, {{"objects", 1, "map"},
                {"objects", 1, "table"},
                {"objects", 1, "sequencer"},
                {"objects", 0, "other"}});
  numbers.sampled.count = 3;
  numbers.sampled.objects = {
      object_of(ObjectKind::map, 1, "default",
                {{"items", std::uint64_t{1} << 60}, {"height", 3}, {"feed_followers", 23}}),
      object_of(ObjectKind::table, 2, "sales", {{"rows", 1000}, {"memory_bytes", 4'259'840}}),
      object_of(ObjectKind::sequencer, 3, "orders", {{"next", 1234}, {"sealed", 1}})};
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
  add_objects(numbers);
  add_work(numbers);
  add_access(numbers);
  add_places(numbers);
  numbers.holders = {{memory::Holder::Kind::snapshot, "process 12", "default", 77, 8192},
                     {memory::Holder::Kind::lease, "session 3", "", 41, 4096}};
  add_peer(numbers);
  add_log(numbers);
  return numbers;
}

}  // namespace espalier::node
