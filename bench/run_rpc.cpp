// SPDX-License-Identifier: Apache-2.0
#include "bench/run_rpc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "bench/benchmark.hpp"
#include "bench/key_cache.hpp"
#include "bench/noop_client.hpp"
#include "bench/own_node.hpp"
#include "bench/resident.hpp"
#include "bench/runner.hpp"
#include "bench/together.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kKeysMin = 4;
constexpr std::uint64_t kNoopsPerOp = 5;  // a no-op is about so many times cheaper
constexpr std::uint64_t kRpcWarmUpOps = 2000;

/// What a point varies.
struct RpcSetting {
  std::uint32_t threads = 1;
  std::uint32_t node_cores = 1;
  NodeTransport transport = NodeTransport::unix_socket;
};

MeasuredPoint new_rpc_point(TargetKind target, const RpcSetting& setting,
                            const RpcOptions& options) {
  MeasuredPoint point;
  point.target = name(target);
  point.parameters["client_threads"] = setting.threads;
  const bool remote = target == TargetKind::node;
  if (remote) {
    point.parameters["transport"] = name(setting.transport);
    point.parameters["node_cores"] = setting.node_cores;
  }
  point.parameters["in_flight"] = options.in_flight;
  point.threads = setting.threads + (remote ? setting.node_cores : 0);
  return point;
}

// --- no-ops --------------------------------------------------------------------------------------

PointSample measure_noops(const RpcSetting& setting, std::uint32_t in_flight, std::uint64_t ops) {
  node::Config config = spinning_node_config(setting.node_cores);
  prepare(config, setting.transport);
  const auto node = start_own_node(config);
  NoopPlan plan;
  plan.in_flight = in_flight;
  struct Client {
    std::unique_ptr<NoopClient> noops;
    std::uint64_t checksum = 0;
    base::Histogram latencies;
  };
  std::vector<Client> clients(setting.threads);
  PointSample sample;
  const double seconds = run_together(
      setting.threads,
      [&](std::uint32_t i) {
        const std::string address = address_of(*node, setting.transport, i);
        clients[i].noops = std::make_unique<NoopClient>(address, plan);
        static_cast<void>(clients[i].noops->keep_in_flight(std::min(ops, kRpcWarmUpOps)));
      },
      [&](std::uint32_t i) {
        Client& client = clients[i];
        const std::uint64_t own = share_of(ops, setting.threads, i);
        client.checksum = in_flight == 1 ? client.noops->one_at_a_time(own, client.latencies)
                                         : client.noops->keep_in_flight(own);
      });
  for (const Client& client : clients) {
    sample.checksum += client.checksum;
    sample.latencies.merge(client.latencies);
  }
  sample.took(ops, seconds);
  return sample;
}

std::vector<MeasuredPoint> noop_points(const RpcOptions& options) {
  std::vector<MeasuredPoint> points;
  const std::uint64_t ops = options.ops * (options.in_flight == 1 ? 1 : kNoopsPerOp);
  const auto add = [&](const RpcSetting& setting) {
    MeasuredPoint point = new_rpc_point(TargetKind::node, setting, options);
    point.workload = "noop";
    point.answers = "no-ops";
    point.measure = [setting, in_flight = options.in_flight, ops] {
      return measure_noops(setting, in_flight, ops);
    };
    points.push_back(std::move(point));
  };
  for (const std::uint32_t node_cores : options.node_cores) {
    for (const std::uint32_t threads : options.threads) {
      for (const NodeTransport transport : options.transports) {
        add({threads, node_cores, transport});
      }
    }
  }
  return points;
}

// --- the map -------------------------------------------------------------------------------------

YcsbOptions map_options(const RpcOptions& options, TargetKind target, const RpcSetting& setting,
                        std::uint64_t keys, double write_share) {
  YcsbOptions result;
  result.targets = {target};
  result.workload = Workload::mixed;
  result.shares.writes = write_share;
  result.keys = keys;
  result.key_bytes = options.key_bytes;
  result.value_bytes = options.value_bytes;
  result.threads = setting.threads;
  result.in_flight = options.in_flight;
  result.node_cores = setting.node_cores;
  result.transport = setting.transport;
  result.ops = options.ops;
  result.seed = options.seed;
  result.seconds = options.seconds;
  result.probe_rounds = 0;  // each point is probed already
  return result;
}

}  // namespace

PointSample measure_map(const YcsbOptions& options, KeyCache& keys, Progress& progress) {
  Runner runner(options, keys.get(options), progress);
  const RunResult result = runner.run(options.targets.front(), 0);
  PointSample sample;
  sample.took(result.ops, result.seconds);
  sample.latencies = result.latencies;
  sample.numbers = {{"load_ops_per_s", result.load_ops_per_s},
                    {"bytes_per_item", result.bytes_per_item}};
  sample.checksum = result.result_hash;
  sample.complete = result.complete;
  return sample;
}

namespace {

class MapPoints {
 public:
  MapPoints(const RpcOptions& options, Progress& progress)
      : options_(options), progress_(progress), keys_(std::make_shared<KeyCache>()) {}

  // Compared points are measured in sequence: the targets, then the shares of writes.
  std::vector<MeasuredPoint> take() {
    const std::uint64_t fit_bytes =
        options_.fit_bytes != 0 ? options_.fit_bytes : available_bytes() / 2;
    for (const std::uint64_t wanted : options_.keys) {
      const std::uint64_t keys =
          wanted == kKeysThatFit ? keys_that_fit(options_, fit_bytes) : wanted;
      for (const std::uint32_t node_cores : options_.node_cores) {
        for (const std::uint32_t threads : options_.threads) {
          for (const double share : options_.write_shares) {
            add_targets({threads, node_cores}, keys, share);
          }
        }
      }
    }
    return std::move(points_);
  }

 private:
  void add_targets(RpcSetting setting, std::uint64_t keys, double share) {
    for (const TargetKind target : options_.targets) {
      if (target != TargetKind::node) {
        // The map in this process has no node's cores to vary, and no transport.
        if (setting.node_cores == options_.node_cores.front()) add(target, setting, keys, share);
        continue;
      }
      for (const NodeTransport transport : options_.transports) {
        setting.transport = transport;
        add(target, setting, keys, share);
      }
    }
  }

  void add(TargetKind target, const RpcSetting& setting, std::uint64_t keys, double share) {
    MeasuredPoint point = new_rpc_point(target, setting, options_);
    point.workload = share == 0 ? "read" : "mixed";
    point.parameters["keys"] = keys;
    point.parameters["write_share"] = share;
    point.answers = fmt::format("{} keys, {} threads, {} written", keys, setting.threads, share);
    point.measure = [ycsb = map_options(options_, target, setting, keys, share), cache = keys_,
                     &progress = progress_] { return measure_map(ycsb, *cache, progress); };
    points_.push_back(std::move(point));
  }

  const RpcOptions& options_;
  Progress& progress_;
  std::shared_ptr<KeyCache> keys_;
  std::vector<MeasuredPoint> points_;
};

}  // namespace

std::uint64_t keys_that_fit(const RpcOptions& options, std::uint64_t bytes) {
  // After random inserts leaves have room left; and the benchmark keeps each key once more, with
  // its rank.
  const std::uint64_t map_bytes = (options.key_bytes + options.value_bytes) * 3 / 2 + 16;
  const std::uint64_t bytes_per_key = map_bytes + options.key_bytes + sizeof(std::uint32_t);
  const std::uint64_t request_bytes =
      options.ops * (sizeof(Request) + options.key_bytes + options.value_bytes);
  const std::uint64_t left = bytes > request_bytes ? bytes - request_bytes : 0;
  return std::max(kKeysMin, left / bytes_per_key);
}

std::optional<std::uint64_t> parse_keys(std::string_view text) {
  if (text == "fit") return kKeysThatFit;
  std::uint64_t keys = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), keys);
  if (error != std::errc() || end != text.data() + text.size() || keys == 0) return std::nullopt;
  return keys;
}

void RpcOptions::declare(OptionRows& rows) {
  rows.choices("--target", targets, parse_target, "node, embedded; both by default (map)");
  rows.choices("--transport", transports, parse_node_transport,
               node_transport_names() + "; to the node; unix by default");
  rows.numbers("--threads", threads, {}, "that ask");
  rows.numbers("--node-cores", node_cores, {}, "workers of the node");
  rows.number("--in-flight", in_flight, {}, "requests in flight on each thread");
  rows.choices("--keys", keys, parse_keys,
               "numbers, or fit: as many as --fit-bytes hold; 1000000,16000000,fit by default");
  rows.number("--fit-bytes", fit_bytes, {}, "memory for --keys fit; 0: half of what is available");
  rows.numbers("--write-share", write_shares, {0, 1}, "of the requests (map)");
  rows.number("--key-bytes", key_bytes, {}, "length of keys (map)");
  rows.number("--value-bytes", value_bytes, {}, "length of values (map)");
  rows.numbers("--batch", batches, {1, 256}, "requests of a batch (batch)");
  rows.number("--batch-keys", batch_keys, {kKeysMin}, "keys of the map (batch)");
  rows.any_numbers("--flood", floods, {},
                   "requests for connections in a second (flood); 0,5000,40000 by default");
  rows.number("--ops", ops, {1},
              "operations of all threads; of no-ops five times as many; of batches what the "
              "largest do");
  rows.number("--seconds", seconds, {}, "stop measuring after so long (map); 0: never");
  rows.of_points(*this);
  const auto is_target = [](TargetKind t) {
    return t == TargetKind::node || t == TargetKind::embedded;
  };
  rows.require(std::ranges::all_of(targets, is_target), "--target must be node, embedded or both");
  if (!rows.checks() || rows.problem()) return;
  // All else is validated as for bench ycsb.
  for (const std::uint64_t each : keys) {
    for (const std::uint32_t asking : threads) {
      for (const std::uint32_t cores : node_cores) {
        const std::uint64_t some = each == kKeysThatFit ? kKeysMin : each;
        rows.require_none(
            problem_of(map_options(*this, targets.front(), {asking, cores}, some, 0)));
      }
    }
  }
}

std::vector<ExperimentRow> RpcOptions::experiment_rows() const {
  return {
      {"noop", [this](Report&) { return noop_points(*this); }},
      {"map", [this](Report& report) { return MapPoints(*this, report.progress()).take(); }},
      {"batch", [this](Report&) { return batch_points(*this); }},
      // Not the cost of calls, but of a neighbour.
      {"flood", [this](Report&) { return flood_points(*this); }, {}, true},
      {"peer", [this](Report& report) { return peer_points(*this, report.progress()); }, {}, true}};
}

}  // namespace espalier::bench
