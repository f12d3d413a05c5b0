// SPDX-License-Identifier: Apache-2.0
#include "bench/run_lines.hpp"

#include <cmath>

namespace espalier::bench {
namespace {

// The transport to a target in another place; nothing if a given address determines it.
std::string_view transport_of(TargetKind kind, const YcsbOptions& options) {
  if (is_ours(kind) && kind != TargetKind::embedded && options.node_address.empty()) {
    return name(options.transport_of(kind));
  }
  if (kind == TargetKind::redis && options.redis_address.empty()) {
    return options.redis_tcp ? "tcp" : "unix";
  }
  return {};
}

void add_parameters(Json& line, const RunResult& result, const YcsbOptions& options,
                    const RequestPlan& plan, const KeySet& keys) {
  line["target"] = name(result.target);
  line["workload"] = name(options.workload);
  line["distribution"] = name(plan.distribution);
  line["key_set"] = name(options.key_source);
  line["keys"] = keys.size();
  line["key_bytes"] = keys.fixed_bytes();
  line["value_bytes"] = options.value_bytes;
  if (options.draw_values) line["values_drawn"] = true;
  if (options.workload == Workload::scan) line["scan_items"] = options.scan_items;
  if (options.workload == Workload::cloud) line["scan_share"] = options.shares.scans;
  if (options.workload == Workload::mixed) line["write_share"] = options.shares.writes;
  line["threads"] = options.threads_of(result.target);
  line["in_flight"] = options.in_flight_of(result.target);
  const std::string_view transport = transport_of(result.target, options);
  if (!transport.empty()) line["transport"] = transport;
  if (is_ours(result.target)) {
    line["versions"] = options.versions;
    line["node_bytes"] = options.node_bytes;
    line["log_bytes"] = options.log_bytes;
    if (result.target == TargetKind::embedded) line["subscribers"] = options.subscribers;
    if (result.target == TargetKind::device) {
      line["cache_bytes"] = options.cache_bytes;
      line["balance"] = options.balance;
      line["slowness"] = options.slowness;
    }
  }
  line["seed"] = options.seed;
  line["repeat"] = result.repeat;
}

}  // namespace

Json to_json(const RunResult& result, const YcsbOptions& options, const RequestPlan& plan,
             const KeySet& keys) {
  Json line;
  add_parameters(line, result, options, plan, keys);
  line["ops"] = result.ops;
  line["seconds"] = result.seconds;
  line["ops_per_s"] = std::round(result.ops_per_s());
  if (result.scanned_items > 0) line["items_per_s"] = std::round(result.items_per_s());
  line["ns_p50"] = result.latencies.percentile(0.5);
  line["ns_p99"] = result.latencies.percentile(0.99);
  line["ns_p999"] = result.latencies.percentile(0.999);
  if (result.feed_news) {
    line["feed_changes"] = result.feed_news->changes;
    line["feed_behind"] = result.feed_news->behind;
  }
  if (result.traffic && result.all_ops != 0) {
    const auto ops = static_cast<double>(result.all_ops);
    line["round_trips_per_op"] = rounded(static_cast<double>(result.traffic->round_trips) / ops);
    line["bytes_per_op"] = rounded(static_cast<double>(result.traffic->bytes) / ops);
    if (result.target == TargetKind::device) {
      line["hit_share"] = result.traffic->hit_share();
      line["forwarded_per_op"] = static_cast<double>(result.traffic->of_device.forwarded) / ops;
    }
  }
  if (result.load_ops_per_s > 0) line["load_ops_per_s"] = std::round(result.load_ops_per_s);
  line["bytes_per_item"] = rounded(result.bytes_per_item);
  line["bytes_left"] = result.bytes_left;
  line["pages"] = result.pages;
  line["settings"] = result.settings;
  line["probe_ns"] = probes_json(result.probe_before_ns, result.probe_after_ns);
  line["complete"] = result.complete;
  line["result_hash"] = hex(result.result_hash);
  line["hash_covers"] = result.exact ? "exact" : "shape";
  line["end_items"] = result.contents.items;
  line["end_hash"] = hex(result.contents.hash);
  return line;
}

std::vector<Column> run_columns() {
  constexpr int kShort = Column::kShort;
  return {{"target", -10, "target"},
          {"ops/s", 8, "ops_per_s", kShort},
          {"items/s", 8, "items_per_s", kShort},
          {"p50 ns", 8, "ns_p50"},
          {"p99 ns", 8, "ns_p99"},
          {"p99.9 ns", 8, "ns_p999"},
          {"load/s", 8, "load_ops_per_s", kShort},
          {"B/item", 7, "bytes_per_item", 1},
          {"probe ns", 11, "probe_ns", 0},
          {"result hash", -16, "result_hash"},
          {"complete", -8, "complete"}};
}

}  // namespace espalier::bench
