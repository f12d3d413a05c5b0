// SPDX-License-Identifier: Apache-2.0
#include "bench/ycsb_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "bench/named_values.hpp"
#include "bench/node_size.hpp"
#include "bench/redis_connection.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kKeysMax = 4'000'000'000;  // indices have 32 bits
constexpr std::uint32_t kThreadsMax = 256;
constexpr std::uint32_t kInFlightMax = 256;
constexpr std::uint32_t kSubscribersMax = 64;
constexpr std::uint64_t kTailOpsMax = 200'000;  // enough for a 99.9th percentile

constexpr std::pair<std::string_view, KeySource> kKeySources[] = {
    {"random", KeySource::random},      {"words", KeySource::words},   {"file", KeySource::file},
    {"integers", KeySource::integers},  {"prefix", KeySource::prefix}, {"url", KeySource::url},
    {"ascending", KeySource::ascending}};

/// Null: it has none.
KeySet::Shape shape_of(KeySource source) {
  switch (source) {
    case KeySource::integers: return integer_key;
    case KeySource::prefix: return prefix_key;
    case KeySource::url: return url_key;
    default: return nullptr;
  }
}

std::optional<std::string> problem_of_keys(const YcsbOptions& options) {
  const bool random = options.key_source == KeySource::random;
  const bool from_file =
      options.key_source == KeySource::words || options.key_source == KeySource::file;
  if (options.keys > kKeysMax || (!from_file && options.keys < 4)) {
    return fmt::format("--keys must be 4 to {}", kKeysMax);
  }
  if (random && (options.key_bytes < kKeyBytesMin || options.key_bytes > kKeyBytesMax)) {
    return fmt::format("--key-bytes must be {} to {}", kKeyBytesMin, kKeyBytesMax);
  }
  if (options.key_source == KeySource::file && options.key_file.empty()) {
    return "--key-set file needs --key-file";
  }
  if (options.value_bytes > (1U << 20)) return "--value-bytes must be 0 to 1048576";
  return std::nullopt;
}

std::optional<std::string> problem_of_map(const YcsbOptions& options) {
  if (!is_node_size(options.node_bytes)) return kNoNodeSize;
  if (options.log_bytes > 2048 || options.log_bytes % 64 != 0) {
    return "--log-bytes must be a multiple of 64 from 0 to 2048";
  }
  if (options.balance > 1000) return "--balance must be 0 to 1000";
  if (!(options.slowness >= 1) || options.slowness > 1000) return "--slow must be 1 to 1000";
  if (options.node_cores < 1 || options.node_cores > 62) return "--node-cores must be 1 to 62";
  return std::nullopt;
}

bool reaches_memory(NodeTransport transport) {
  return transport != NodeTransport::unix_socket && transport != NodeTransport::ofi_tcp &&
         transport != NodeTransport::ofi_tcp_send;
}

}  // namespace

std::optional<std::string> problem_of(const YcsbOptions& options) {
  if (options.targets.empty()) return "--target names no target";
  if (auto problem = problem_of_keys(options)) return problem;
  if (auto problem = problem_of_map(options)) return problem;
  if (options.threads < 1 || options.threads > kThreadsMax) {
    return fmt::format("--threads must be 1 to {}", kThreadsMax);
  }
  if (options.in_flight < 1 || options.in_flight > kInFlightMax) {
    return fmt::format("--in-flight must be 1 to {}", kInFlightMax);
  }
  if (!options.redis_address.empty() && !parse_redis_address(options.redis_address)) {
    return "--redis-address must be unix:PATH or tcp:HOST:PORT";
  }
  const bool alone = std::ranges::count(options.targets, TargetKind::one_sided) != 0;
  if (alone && !options.versions) return "one-sided reads need a map with --versions on";
  if (alone && options.node_address.starts_with("unix:")) {
    return "one-sided reads go over shm and roce only: give --node-address shm:PATH or roce:...";
  }
  if (alone && !reaches_memory(options.transport_of(TargetKind::one_sided))) {
    return "one-sided reads go over shm and roce only: give --transport shm, or leave it out";
  }
  if (!options.node_address.empty() &&
      std::ranges::count(options.targets, TargetKind::device) != 0) {
    return "target device is of the run's own: ask one that runs already as --target node";
  }
  if (!options.node_address.empty() && options.transport) {
    return "--transport is for a node of the run's own: --node-address says it for another";
  }
  if (!options.redis_address.empty() && options.redis_tcp) {
    return "--redis-tcp is for a Redis of the run's own: --redis-address says it for another";
  }
  if (options.subscribers > kSubscribersMax) {
    return fmt::format("--subscribers must be at most {}", kSubscribersMax);
  }
  if (options.repeats < 1 || options.repeats > 1000) return "--repeats must be 1 to 1000";
  if (!(options.seconds >= 0)) return "--seconds must not be negative";
  if (options.ops > kKeysMax) return fmt::format("--ops must be at most {}", kKeysMax);
  if (options.scan_items < 1 || options.scan_items > 1'000'000) {
    return "--scan-items must be 1 to 1000000";
  }
  const auto is_share = [](double share) { return share >= 0 && share <= 1; };
  if (!is_share(options.shares.scans)) {
    return "--scan-share must be 0 to 1 (honeycomb uses 0.5 to 1)";
  }
  if (!is_share(options.shares.writes)) return "--write-share must be 0 to 1";
  return std::nullopt;
}

std::string_view name(KeySource source) { return name_in(kKeySources, source); }

std::optional<KeySource> parse_key_source(std::string_view text) {
  return value_in(kKeySources, text);
}

std::shared_ptr<const KeySet> make_keys(const YcsbOptions& options) {
  if (options.key_source == KeySource::random) {
    return std::make_shared<const KeySet>(
        KeySet::random(options.keys, options.key_bytes, options.seed));
  }
  if (options.key_source == KeySource::ascending) {
    return std::make_shared<const KeySet>(KeySet::in_order(options.keys, integer_key));
  }
  if (const KeySet::Shape shape = shape_of(options.key_source)) {
    return std::make_shared<const KeySet>(KeySet::of_shape(options.keys, shape, options.seed));
  }
  const std::string path =
      options.key_source == KeySource::words ? std::string(kWordsPath) : options.key_file;
  return std::make_shared<const KeySet>(KeySet::from_file(path, options.keys, options.seed));
}

RequestPlan plan_of(const YcsbOptions& options, const KeySet& keys) {
  const std::uint64_t needed =
      std::max<std::uint64_t>(4, scan_items_max(options.workload, options.scan_items));
  if (keys.size() < needed) {
    throw std::runtime_error(
        fmt::format("this workload needs {} keys at least, there are {}", needed, keys.size()));
  }
  RequestPlan plan;
  plan.workload = options.workload;
  plan.distribution = options.distribution.value_or(default_distribution(options.workload));
  plan.shares = options.shares;
  plan.scan_items = options.scan_items;
  plan.values = options.values();
  plan.threads = options.threads;
  plan.seed = options.seed;
  plan.ops = options.ops != 0 ? options.ops : default_ops(options.workload, options.scan_items);
  if (covers_keys(options.workload)) plan.ops = keys.size();
  plan.tail_ops = std::clamp<std::uint64_t>(plan.ops / 16, 1, kTailOpsMax);
  if (options.workload == Workload::erase) plan.ops -= plan.tail_ops;  // the tail erases the rest
  return plan;
}

TargetOptions target_options_of(TargetKind kind, const YcsbOptions& options,
                                const RequestPlan& plan, const KeySet& keys) {
  TargetOptions result;
  result.items_max = keys.size() + plan.ops + plan.tail_ops;
  result.fixed_key_bytes = keys.fixed_bytes();
  result.value_bytes = options.value_bytes;
  result.fixed_values = !options.draw_values;
  result.threads = options.threads_of(kind);
  result.in_flight = options.in_flight_of(kind);
  result.writes = mutates(options.workload, options.shares);
  result.ordered = scans(options.workload);
  result.versions = options.versions;
  result.node_bytes = options.node_bytes;
  result.log_bytes = options.log_bytes;
  result.subscribers = options.subscribers;
  result.node_cores = options.node_cores;
  result.data_dir = options.data_dir;
  result.durability = options.durability;
  result.node_address = options.node_address;
  result.transport = options.transport_of(kind);
  result.cache_bytes = options.cache_bytes;
  result.balance = options.balance;
  result.slowness = options.slowness;
  result.redis_address = options.redis_address;
  result.redis_tcp = options.redis_tcp;
  return result;
}

bool answers_are_exact(const YcsbOptions& options) {
  return !mutates(options.workload, options.shares) ||
         (options.threads == 1 && options.in_flight == 1);
}

}  // namespace espalier::bench
