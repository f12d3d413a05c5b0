// SPDX-License-Identifier: Apache-2.0
#include "bench/run_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/random.hpp"
#include "bench/benchmark.hpp"
#include "bench/map_session.hpp"
#include "bench/node_size.hpp"
#include "bench/node_transport.hpp"
#include "bench/one_at_a_time.hpp"
#include "bench/own_node.hpp"
#include "bench/read_load.hpp"
#include "bench/turn_costs.hpp"
#include "shards/sharding.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kMap = "placed";
constexpr std::size_t kTogether = 4096;  // requests made before their clock runs

/// Counts wrong answers.
class Checks final : public Handler {
 public:
  void done(const Completion& completion) override {
    wrong_ += completion.ok && (completion.op != Op::get || completion.found) ? 0 : 1;
  }
  [[nodiscard]] std::uint64_t wrong() const { return wrong_; }

 private:
  std::uint64_t wrong_ = 0;
};

/// A map over two nodes of this process.
class TwoNodes {
 public:
  TwoNodes(const PlaceOptions& options, std::uint64_t share)
      : nodes_{start_own_node(spinning(options)),
               start_own_node(spinning(options), second_of(options))},
        keys_of_first_(options.keys - options.keys * share / 100) {
    const std::string border = keys_of_first_ == options.keys ? "user~" : read_key(keys_of_first_);
    const auto way = options.one_sided ? NodeTransport::shm : NodeTransport::unix_socket;
    const std::vector<wire::Shard> shards = {{"", address_of(*nodes_[0], way)},
                                             {border, address_of(*nodes_[1], way)}};
    const MapOptions shape{.node_bytes = static_cast<std::uint32_t>(options.node_bytes)};
    if (const auto made = client::create_shards(kMap, shape, shards); !made) {
      throw std::runtime_error("cannot make the map: " + message(made.error().error));
    }
    const Access access = options.one_sided ? Access::one_sided : Access::rpc;
    store_.emplace(value_or_throw(
        Store::connect(shards[0].address, {.access = access, .cache_bytes = options.cache_bytes}),
        "cannot connect"));
    map_.emplace(value_or_throw(store_->open_map(kMap), "cannot open the map"));
    fill(options);
  }
  [[nodiscard]] const Map& map() const { return *map_; }
  [[nodiscard]] const node::Node& first() const { return *nodes_[0]; }
  [[nodiscard]] const node::Node& second() const { return *nodes_[1]; }
  [[nodiscard]] bool is_of_second(std::uint64_t key) const { return key >= keys_of_first_; }

 private:
  static node::Config spinning(const PlaceOptions& options) {
    node::Config config = spinning_node_config(options.node_cores);
    config.memory.limit = (std::uint64_t{256} << 20) + options.keys * (options.value_bytes + 128);
    config.node.one_sided = options.one_sided;
    if (options.one_sided) prepare(config, NodeTransport::shm);
    return config;
  }
  static node::NodeOptions second_of(const PlaceOptions& options) {
    node::NodeOptions second;
    second.core = {.taken = options.node_cores, .slowness = options.slowness};
    return second;
  }
  void fill(const PlaceOptions& options) {
    Pipeline pipeline = value_or_throw(Pipeline::open(*map_, 64), "no pipeline");
    const std::string value(options.value_bytes, 'v');
    Checks checks;
    std::vector<std::string> keys(kTogether);
    std::vector<Request> puts(kTogether);
    for (std::uint64_t from = 0; from < options.keys; from += kTogether) {
      const std::size_t count = std::min<std::uint64_t>(kTogether, options.keys - from);
      for (std::size_t i = 0; i < count; ++i) {
        keys[i] = read_key(from + i);
        puts[i] = {.op = Op::put, .key = keys[i], .value = value};
      }
      pipeline.run(std::span(puts).first(count), checks);
    }
    if (checks.wrong() != 0) throw std::runtime_error("cannot fill the map");
  }

  std::unique_ptr<node::Node> nodes_[2];
  const std::uint64_t keys_of_first_;
  std::optional<Store> store_;
  std::optional<Map> map_;
};

/// Requests at random, of one thread.
class PlaceRequests {
 public:
  PlaceRequests(const PlaceOptions& options, std::uint64_t reads, std::uint64_t seed)
      : options_(options), reads_(reads), random_(seed), value_(options.value_bytes, 'w') {
    keys_.resize(kTogether);
    requests_.reserve(kTogether);
  }
  void clear() { requests_.clear(); }
  /// Adds one, and returns the number of its key. Requires: there are less than kTogether.
  std::uint64_t add() {
    const std::uint64_t number = random_.below(options_.keys);
    const bool read = random_.below(100) < reads_;
    std::string& key = keys_[requests_.size()] = read_key(number);
    requests_.push_back({.op = read ? Op::get : Op::put, .key = key});
    if (!read) requests_.back().value = value_;
    return number;
  }
  [[nodiscard]] std::span<const Request> all() const { return requests_; }

 private:
  const PlaceOptions& options_;
  const std::uint64_t reads_;
  base::Random random_;
  const std::string value_;
  std::vector<std::string> keys_;
  std::vector<Request> requests_;
};

/// The cache of a one-sided pipeline is empty at first.
void warm(Pipeline& pipeline, const PlaceOptions& options, Checks& checks) {
  if (!options.one_sided || options.cache_bytes == 0) return;
  get_each(pipeline, options.keys, stride_of_leaves(options.node_bytes), checks);
}

/// One thread's load; returns the time that its requests took.
std::uint64_t ask(const Map& map, const PlaceOptions& options, std::uint64_t reads,
                  std::uint64_t seed, std::atomic<std::uint64_t>& wrong) {
  Pipeline pipeline = value_or_throw(Pipeline::open(map, options.in_flight), "no pipeline");
  PlaceRequests requests(options, reads, seed);
  Checks checks;
  warm(pipeline, options, checks);
  std::uint64_t ns = 0;
  for (std::uint64_t done = 0; done < options.ops; done += kTogether) {
    const std::size_t count = std::min<std::uint64_t>(kTogether, options.ops - done);
    requests.clear();
    for (std::size_t i = 0; i < count; ++i) requests.add();
    const base::Stopwatch watch;
    pipeline.run(requests.all(), checks);
    ns += watch.elapsed_ns();
  }
  wrong += checks.wrong();
  return ns;
}

/// Processor time of each side, per request.
struct PlaceCosts {
  double client_ns = 0;
  double first_ns = 0;
  double second_ns = 0;
};

// In turns: as many requests at a time as are in flight on a node.
PlaceCosts costs_of(const TwoNodes& nodes, const PlaceOptions& options, std::uint64_t reads) {
  Pipeline pipeline = value_or_throw(Pipeline::open(nodes.map(), options.in_flight), "no pipeline");
  PlaceRequests requests(options, reads, options.seed * 1000 + 999);
  Checks checks;
  warm(pipeline, options, checks);
  ClientTurns turns(options.one_sided);
  const WorkerMeter first(nodes.first());
  const WorkerMeter second(nodes.second());
  const std::uint64_t ops = std::min(options.ops, kCostBatches * options.in_flight);
  std::uint64_t done = 0;
  while (done < ops) {
    requests.clear();
    std::uint32_t of_node[2] = {0, 0};
    while (std::ranges::max(of_node) < options.in_flight) {
      ++of_node[nodes.is_of_second(requests.add()) ? 1 : 0];
    }
    turns.run(pipeline, requests.all(), checks);
    done += requests.all().size();
  }
  if (checks.wrong() != 0) throw std::runtime_error("answers are wrong");
  const auto per_op = [&](double ns) { return ns / static_cast<double>(done); };
  return {per_op(turns.cpu_ns()), per_op(first.cpu_ns()), per_op(second.cpu_ns())};
}

double place_model(const PlaceOptions& options, const PlaceCosts& costs) {
  const Side sides[] = {
      {.cpu_ns_per_op = costs.client_ns, .cores = static_cast<double>(options.threads)},
      {.cpu_ns_per_op = costs.first_ns, .cores = static_cast<double>(options.node_cores)},
      {.cpu_ns_per_op = costs.second_ns,
       .cores = static_cast<double>(options.node_cores),
       .slowness = options.slowness}};
  return model_ops_per_s(sides);
}

double measure_place(const Map& map, const PlaceOptions& options, std::uint64_t reads) {
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::uint64_t> took(options.threads);
  std::vector<std::jthread> threads;
  for (std::uint32_t t = 0; t < options.threads; ++t) {
    threads.emplace_back(
        [&, t] { took[t] = ask(map, options, reads, options.seed * 1000 + t, wrong); });
  }
  threads.clear();
  if (wrong != 0) throw std::runtime_error("answers are wrong");
  const auto longest = static_cast<double>(*std::ranges::max_element(took));
  return static_cast<double>(options.ops * options.threads) * 1e9 / longest;
}

base::Histogram latencies_of(const Map& map, const PlaceOptions& options, std::uint64_t reads) {
  Pipeline pipeline = value_or_throw(Pipeline::open(map, 1), "no pipeline");
  PlaceRequests requests(options, reads, options.seed * 1000 + 998);
  Checks checks;
  warm(pipeline, options, checks);
  for (std::size_t i = 0; i < std::min<std::uint64_t>(kTogether, options.ops); ++i) requests.add();
  base::Histogram latencies = one_at_a_time(pipeline, requests.all(), checks);
  if (checks.wrong() != 0) throw std::runtime_error("answers are wrong");
  return latencies;
}

Json place_line(const PlaceOptions& options, const TwoNodes& nodes, std::uint64_t reads) {
  const double rate = measure_place(nodes.map(), options, reads);
  const base::Histogram latencies = latencies_of(nodes.map(), options, reads);
  const PlaceCosts costs = costs_of(nodes, options, reads);
  return {
      {"ops", options.ops * options.threads},    {"ops_per_s", rate},
      {"ns_p50", latencies.percentile(0.5)},     {"ns_p99", latencies.percentile(0.99)},
      {"client_cpu_ns_per_op", costs.client_ns}, {"first_cpu_ns_per_op", costs.first_ns},
      {"second_cpu_ns_per_op", costs.second_ns}, {"model_ops_per_s", place_model(options, costs)}};
}

Json place_parameters(const PlaceOptions& options, std::uint64_t share, std::uint64_t reads,
                      std::uint32_t repeat) {
  Json line{{"target", "sharded"},
            {"workload", reads == 100 ? "get" : "mixed"},
            {"share_percent", share},
            {"read_percent", reads},
            {"keys", options.keys},
            {"value_bytes", options.value_bytes},
            {"node_bytes", options.node_bytes}};
  if (options.one_sided) line["cache_bytes"] = options.cache_bytes;
  line.update({{"threads", options.threads},
               {"in_flight", options.in_flight},
               {"node_cores", options.node_cores},
               {"slowness", options.slowness},
               {"access", options.one_sided ? "one-sided" : "rpc"},
               {"crowded", options.threads + 2 * options.node_cores > base::usable_cores().size()},
               {"seed", options.seed},
               {"repeat", repeat}});
  return line;
}

void run_place(const PlaceOptions& options, Report& report) {
  report.table({{"second node", -12, "share_percent", 0, 1, " %"},
                {"reads", 6, "read_percent", 0, 1, " %"},
                {"k ops/s", 10, "ops_per_s", 1, 1e-3},
                {"p50 ns", 8, "ns_p50"},
                {"p99 ns", 8, "ns_p99"},
                {"client ns", 10, "client_cpu_ns_per_op", 0},
                {"first ns", 9, "first_cpu_ns_per_op", 0},
                {"second ns", 10, "second_cpu_ns_per_op", 0},
                {"model k/s", 10, "model_ops_per_s", 1, 1e-3}});
  for (const std::uint64_t share : options.shares) {
    report.progress().show(fmt::format("{} % of the keys on the second node", share));
    const TwoNodes nodes(options, share);
    for (std::uint32_t repeat = 0; repeat < options.repeats; ++repeat) {
      for (const std::uint64_t reads : options.reads) {
        Json line = place_parameters(options, share, reads, repeat);
        line.update(place_line(options, nodes, reads));
        report.line(line);
      }
    }
  }
}

}  // namespace

void PlaceOptions::declare(OptionRows& rows) {
  rows.numbers("--shares", shares, {0, 100}, "percent of the keys on the second node");
  rows.numbers("--reads", reads, {0, 100}, "percent of the requests that read");
  rows.number("--keys", keys, {100, 100'000'000}, "of the map");
  rows.number("--value-bytes", value_bytes, {0, 400}, "of each value");
  rows.number("--ops", ops, {1, 1'000'000'000}, "requests of each thread");
  rows.number("--threads", threads, {1, 256}, "that ask");
  rows.number("--in-flight", in_flight, {1, 256}, "requests of a thread on each node");
  rows.number("--node-cores", node_cores, {1, 64}, "of each node");
  rows.number("--slow", slowness, {1, 1000},
              "how many times as slow the second node's workers are as this machine: they spin "
              "after each turn");
  rows.number("--repeats", repeats, {1, 1000}, "rounds");
  rows.flag("--one-sided", one_sided, "read by READs of either node's memory, over shm");
  rows.number("--node-bytes", node_bytes, {}, "size of nodes");
  rows.require(is_node_size(node_bytes), kNoNodeSize);
  rows.number("--cache", cache_bytes, {},
              "bytes that a client remembers that reads by READs; it is filled before");
  rows.number("--seed", seed, {}, "of the keys that are asked for");
  rows.json(*this);
}

std::vector<ExperimentRow> PlaceOptions::experiment_rows() const {
  return {{"place", {}, [this](Report& report) { run_place(*this, report); }}};
}

}  // namespace espalier::bench
