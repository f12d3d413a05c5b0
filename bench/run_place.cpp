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
#include "base/random.hpp"
#include "bench/map_session.hpp"
#include "bench/node_transport.hpp"
#include "bench/own_node.hpp"
#include "bench/progress.hpp"
#include "bench/report.hpp"
#include "client/sharding.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kMap = "placed";
constexpr std::size_t kTogether = 4096;  // requests that are made before their clock runs

std::string key_of(std::uint64_t number) { return fmt::format("user{:012}", number); }

/// Counts answers that cannot be.
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
      : nodes_{start_own_node(spinning(options)), start_own_node(spinning(options))} {
    const std::uint64_t first = options.keys - options.keys * share / 100;
    const std::string border = first == options.keys ? "user~" : key_of(first);
    const auto way = options.one_sided ? NodeTransport::shm : NodeTransport::unix_socket;
    const std::vector<wire::Shard> shards = {{"", address_of(*nodes_[0], way)},
                                             {border, address_of(*nodes_[1], way)}};
    if (const auto made = client::create_shards(kMap, {}, shards); !made) {
      throw std::runtime_error("cannot make the map: " + message(made.error().error));
    }
    const Access access = options.one_sided ? Access::one_sided : Access::rpc;
    store_.emplace(
        value_or_throw(Store::connect(shards[0].address, {.access = access}), "cannot connect"));
    map_.emplace(value_or_throw(store_->open_map(kMap), "cannot open the map"));
    fill(options);
  }
  [[nodiscard]] const Map& map() const { return *map_; }

 private:
  static node::Config spinning(const PlaceOptions& options) {
    node::Config config = spinning_node_config(options.node_cores);
    config.memory.limit = (std::uint64_t{256} << 20) + options.keys * (options.value_bytes + 128);
    config.node.one_sided = options.one_sided;
    if (options.one_sided) prepare(config, NodeTransport::shm);
    return config;
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
        keys[i] = key_of(from + i);
        puts[i] = {.op = Op::put, .key = keys[i], .value = value};
      }
      pipeline.run(std::span(puts).first(count), checks);
    }
    if (checks.wrong() != 0) throw std::runtime_error("cannot fill the map");
  }

  std::unique_ptr<node::Node> nodes_[2];
  std::optional<Store> store_;
  std::optional<Map> map_;
};

/// What one thread does; returns the time that its requests took.
std::uint64_t ask(const Map& map, const PlaceOptions& options, std::uint64_t reads,
                  std::uint64_t seed, std::atomic<std::uint64_t>& wrong) {
  Pipeline pipeline = value_or_throw(Pipeline::open(map, options.in_flight), "no pipeline");
  base::Random random(seed);
  const std::string value(options.value_bytes, 'w');
  Checks checks;
  std::vector<std::string> keys(kTogether);
  std::vector<Request> requests(kTogether);
  std::uint64_t ns = 0;
  for (std::uint64_t done = 0; done < options.ops; done += kTogether) {
    const std::size_t count = std::min<std::uint64_t>(kTogether, options.ops - done);
    for (std::size_t i = 0; i < count; ++i) {
      keys[i] = key_of(random.below(options.keys));
      const bool read = random.below(100) < reads;
      requests[i] = {.op = read ? Op::get : Op::put, .key = keys[i]};
      if (!read) requests[i].value = value;
    }
    const base::Stopwatch watch;
    pipeline.run(std::span(requests).first(count), checks);
    ns += watch.elapsed_ns();
  }
  wrong += checks.wrong();
  return ns;
}

double measure(const Map& map, const PlaceOptions& options, std::uint64_t reads) {
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

}  // namespace

std::optional<std::string> problem_of(const PlaceOptions& options) {
  const auto percent = [](std::uint64_t each) { return each <= 100; };
  if (!std::ranges::all_of(options.shares, percent)) return "--shares must be 0 to 100";
  if (!std::ranges::all_of(options.reads, percent)) return "--reads must be 0 to 100";
  if (options.keys < 100 || options.keys > 100'000'000) return "--keys must be 100 to 100000000";
  if (options.value_bytes > 400) return "--value-bytes must be 0 to 400";
  if (options.ops < 1 || options.ops > 1'000'000'000) return "--ops must be 1 to 1000000000";
  if (options.threads < 1 || options.threads > 256) return "--threads must be 1 to 256";
  if (options.in_flight < 1 || options.in_flight > 256) return "--in-flight must be 1 to 256";
  if (options.node_cores < 1 || options.node_cores > 64) return "--node-cores must be 1 to 64";
  return std::nullopt;
}

int run_place(const PlaceOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  const std::vector<std::uint64_t> shares =
      options.shares.empty() ? std::vector<std::uint64_t>{0, 25, 50, 75, 100} : options.shares;
  const std::vector<std::uint64_t> all_reads =
      options.reads.empty() ? std::vector<std::uint64_t>{100, 50} : options.reads;
  Progress progress(output);
  Table table(output.out, {{"second node", -12}, {"reads", 6}, {"k ops/s", 10}});
  std::uint64_t measurements = 0;
  for (const std::uint64_t share : shares) {
    progress.show(fmt::format("{} % of the keys on the second node", share));
    const TwoNodes nodes(options, share);
    for (const std::uint64_t reads : all_reads) {
      const double rate = measure(nodes.map(), options, reads);
      progress.clear();
      ++measurements;
      if (!options.json) {
        table.row({fmt::format("{} %", share), fmt::format("{} %", reads),
                   fmt::format("{:.1f}", rate * 1e-3)});
        continue;
      }
      Json line;
      line["bench"] = "place";
      line["target"] = "sharded";
      line["workload"] = reads == 100 ? "get" : "mixed";
      line["share_percent"] = share;
      line["read_percent"] = reads;
      line["keys"] = options.keys;
      line["value_bytes"] = options.value_bytes;
      line["threads"] = options.threads;
      line["in_flight"] = options.in_flight;
      line["node_cores"] = options.node_cores;
      line["access"] = options.one_sided ? "one-sided" : "rpc";
      line["seed"] = options.seed;
      line["ops"] = options.ops * options.threads;
      line["ops_per_s"] = rate;
      print_line(output.out, line);
    }
  }
  print_measurements(output.out, "place", measurements, options.json);
  return 0;
}

}  // namespace espalier::bench
