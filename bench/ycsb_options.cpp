// SPDX-License-Identifier: Apache-2.0
#include "bench/ycsb_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "bench/named_values.hpp"
#include "bench/node_size.hpp"
#include "bench/option_rows.hpp"
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

/// Null: none.
KeySet::Shape shape_of(KeySource source) {
  switch (source) {
    case KeySource::integers: return integer_key;
    case KeySource::prefix: return prefix_key;
    case KeySource::url: return url_key;
    default: return nullptr;
  }
}

void declare_keys(OptionRows& rows, YcsbOptions& options) {
  const bool from_file =
      options.key_source == KeySource::words || options.key_source == KeySource::file;
  rows.choice("--key-set", options.key_source, parse_key_source, kKeySourceNames);
  rows.text("--key-file", options.key_file, "file with a key on each line");
  rows.number("--keys", options.keys, {from_file ? 0U : 4U, kKeysMax},
              "keys to load; from files at most so many, 0: all");
  const bool random = options.key_source == KeySource::random;
  rows.number("--key-bytes", options.key_bytes,
              {random ? kKeyBytesMin : 0, random ? kKeyBytesMax : ~0U}, "length of random keys");
  rows.require(options.key_source != KeySource::file || !options.key_file.empty(),
               "--key-set file needs --key-file");
  rows.number("--value-bytes", options.value_bytes, {0, 1U << 20}, "length of values");
  rows.flag("--draw-values", options.draw_values,
            "values are of 0 to --value-bytes, each drawn by itself");
}

void declare_map(OptionRows& rows, YcsbOptions& options) {
  rows.on_or_off("--versions", options.versions, " (embedded and node only)");
  rows.number("--node-bytes", options.node_bytes, {}, "node size (embedded and node only)");
  rows.require(is_node_size(options.node_bytes), kNoNodeSize);
  rows.number("--log-bytes", options.log_bytes, {0, 2048},
              "log block of a leaf (embedded and node only)");
  rows.require(options.log_bytes % 64 == 0, "--log-bytes must be a multiple of 64 from 0 to 2048");
  rows.number("--subscribers", options.subscribers, {0, kSubscribersMax},
              "threads that follow the map's mapping feed meanwhile (embedded only)");
  rows.number("--node-cores", options.node_cores, {1, 62},
              "workers of the node (node and one-sided only)");
  rows.require(options.balance <= 1000, "--balance must be 0 to 1000");
  rows.require(options.slowness >= 1 && options.slowness <= 1000, "--slow must be 1 to 1000");
}

bool reaches_memory(NodeTransport transport) {
  return transport != NodeTransport::unix_socket && transport != NodeTransport::ofi_tcp &&
         transport != NodeTransport::ofi_tcp_send;
}

}  // namespace

void YcsbOptions::declare(OptionRows& rows) {
  rows.choice("--workload", workload, parse_workload,
              "a b c d e f (YCSB), cloud, get, scan, mixed, load, load-ascending, erase");
  rows.choice("--distribution", distribution, parse_distribution,
              "uniform, zipfian, latest; by default the workload's own");
  rows.number("--scan-share", shares.scans, {0, 1}, "share of scans (workload cloud)");
  rows.number("--write-share", shares.writes, {0, 1}, "share of updates (workload mixed)");
  rows.number("--scan-items", scan_items, {1, 1'000'000}, "items of each scan (workload scan)");
  declare_common(rows);
}

void YcsbOptions::declare_common(OptionRows& rows) {
  rows.choices("--target", targets, parse_target,
               "embedded, node, one-sided, device, absl, rocksdb, lmdb, redis; several with commas "
               "take turns");
  declare_keys(rows, *this);
  rows.number("--threads", threads, {1, kThreadsMax}, "thread t runs on the t-th core");
  rows.flag("--peers-on-one-thread", peers_on_one_thread,
            "peers run all threads' requests on one thread, without a lock");
  rows.number("--in-flight", in_flight, {1, kInFlightMax},
              "requests in flight on each thread; 1: one call at a time");
  rows.number("--ops", ops, {0, kKeysMax},
              "operations of all threads; 0: as the workload suggests");
  rows.number("--seed", seed, {}, "same seed, same requests");
  rows.number("--seconds", seconds, {}, "stop measuring after so long; 0: never");
  rows.number("--repeats", repeats, {1, 1000}, "rounds; medians are printed");
  declare_map(rows, *this);
  rows.node_address(node_address,
                    "a node that runs already, as unix:PATH or an address of the fabric; else one "
                    "is started for the run");
  rows.choice(
      "--transport", transport, parse_node_transport,
      node_transport_names() + " (the run's own node only); unix by default, of one-sided shm");
  rows.text("--redis-address", redis_address,
            "a Redis that runs already and is empty, as unix:PATH or tcp:HOST:PORT; else one is "
            "started for the run");
  rows.flag("--redis-tcp", redis_tcp,
            "the run's own Redis listens at a TCP port of the loopback interface, not at a UNIX "
            "socket");
  rows.of_output(*this);

  const bool alone = std::ranges::count(targets, TargetKind::one_sided) != 0;
  rows.require(redis_address.empty() || parse_redis_address(redis_address),
               "--redis-address must be unix:PATH or tcp:HOST:PORT");
  rows.require(!alone || versions, "one-sided reads need a map with --versions on");
  rows.require(
      !alone || !node_address.starts_with("unix:"),
      "one-sided reads go over shm and roce only: give --node-address shm:PATH or roce:...");
  rows.require(!alone || reaches_memory(transport_of(TargetKind::one_sided)),
               "one-sided reads go over shm and roce only: give --transport shm, or leave it out");
  rows.require(node_address.empty() || std::ranges::count(targets, TargetKind::device) == 0,
               "target device is of the run's own: ask one that runs already as --target node");
  rows.require(node_address.empty() || !transport,
               "--transport is for a node of the run's own: --node-address says it for another");
  rows.require(redis_address.empty() || !redis_tcp,
               "--redis-tcp is for a Redis of the run's own: --redis-address says it for another");
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
