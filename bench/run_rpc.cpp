// SPDX-License-Identifier: Apache-2.0
#include "bench/run_rpc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <stdexcept>

#include "bench/key_cache.hpp"
#include "bench/noop_client.hpp"
#include "bench/own_node.hpp"
#include "bench/resident.hpp"
#include "bench/runner.hpp"
#include "bench/together.hpp"

namespace espalier::bench {
namespace {

constexpr std::array<std::string_view, 5> kRpcExperiments{"noop", "map", "batch", "flood", "peer"};
constexpr std::uint64_t kKeysMin = 4;
constexpr std::uint64_t kNoopsPerOp = 5;  // a no-op is cheaper by about so much
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

  // What is compared is measured one after the other: the targets, then the shares of writes.
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
        // The map in this process has no other cores to try, and no way to it.
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

template <class T, class Test>
bool any_not(const std::vector<T>& values, Test test) {
  return values.empty() || !std::ranges::all_of(values, test);
}

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

std::string rpc_experiment_names() { return fmt::to_string(fmt::join(kRpcExperiments, ", ")); }

std::optional<std::string> problem_of(const RpcOptions& options) {
  if (auto problem = problem_of_experiments(options.experiments, kRpcExperiments)) return problem;
  if (any_not(options.targets,
              [](TargetKind t) { return t == TargetKind::node || t == TargetKind::embedded; })) {
    return "--target must be node, embedded or both";
  }
  if (any_not(options.write_shares, [](double share) { return share >= 0 && share <= 1; })) {
    return "--write-share must be 0 to 1";
  }
  if (options.transports.empty()) return "--transport names none";
  if (any_not(options.batches, [](std::uint32_t batch) { return batch >= 1 && batch <= 256; })) {
    return "--batch must be 1 to 256";
  }
  if (options.batch_keys < kKeysMin) {
    return fmt::format("--batch-keys must be {} or more", kKeysMin);
  }
  if (options.keys.empty()) return "--keys names no number";
  if (options.threads.empty()) return "--threads names no number";
  if (options.node_cores.empty()) return "--node-cores names no number";
  if (options.ops < 1) return "--ops must be at least 1";
  if (options.repeats < 1) return "--repeats must be at least 1";
  // All else is what bench ycsb may be asked, too.
  for (const std::uint64_t keys : options.keys) {
    for (const std::uint32_t threads : options.threads) {
      for (const std::uint32_t node_cores : options.node_cores) {
        const std::uint64_t some = keys == kKeysThatFit ? kKeysMin : keys;
        const RpcSetting setting{threads, node_cores};
        const auto problem =
            problem_of(map_options(options, options.targets.front(), setting, some, 0));
        if (problem) return problem;
      }
    }
  }
  return std::nullopt;
}

int run_rpc(const RpcOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  Progress progress(output);
  PointRun run("rpc", options, output);
  if (is_chosen(options.experiments, "noop")) run.run("noop", noop_points(options));
  if (is_chosen(options.experiments, "map")) run.run("map", MapPoints(options, progress).take());
  if (is_chosen(options.experiments, "batch")) run.run("batch", batch_points(options));
  // Not the cost of asking, but of a neighbour.
  if (std::ranges::find(options.experiments, "flood") != options.experiments.end()) {
    run.run("flood", flood_points(options));
  }
  if (std::ranges::find(options.experiments, "peer") != options.experiments.end()) {
    run.run("peer", peer_points(options, progress));
  }
  return run.finish();
}

}  // namespace espalier::bench
