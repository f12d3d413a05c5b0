// SPDX-License-Identifier: Apache-2.0
#include "bench/run_in_network.hpp"

#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "base/clock.hpp"
#include "base/zipf.hpp"
#include "bench/progress.hpp"
#include "bench/rank_tree.hpp"
#include "bench/report.hpp"
#include "dataplane/compiler.hpp"

namespace espalier::bench {
namespace {

constexpr std::array<const char*, 5> kExperiments{"scale", "changed", "skew", "nodes", "layers"};
constexpr double kTheta = base::kZipfTheta;

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

// One measurement: the tree, the tables, and the requests.
struct Point {
  std::string workload;
  std::uint64_t keys = 0;
  double theta = kTheta;
  double changed = 0;  // part of the requests that follows other ranks
  dataplane::TableLimits limits;
};

class InNetworkRun {
 public:
  InNetworkRun(const InNetworkOptions& options, const Output& output)
      : options_(options),
        out_(output.out),
        progress_(output),
        table_(output.out, {{"experiment", -10},
                            {"keys", 9},
                            {"skew", 5},
                            {"changed", 7},
                            {"ranges", 6},
                            {"sets", 4},
                            {"nodes", 6},
                            {"without", 7},
                            {"READs", 6},
                            {"p99", 4},
                            {"one READ", 8},
                            {"compile ms", 10}}) {}

  void run(const std::string& experiment) {
    if (experiment == "scale") {
      for (const double times : {0.5, 1.0, 1.5, 2.5, 3.5, 5.0}) {
        Point point = usual(experiment);
        point.keys = static_cast<std::uint64_t>(static_cast<double>(options_.keys) * times);
        measure(point);
      }
    } else if (experiment == "changed") {
      for (const double changed : {0.0, 0.25, 0.5, 0.75, 1.0}) {
        Point point = usual(experiment);
        point.changed = changed;
        measure(point);
      }
    } else if (experiment == "skew") {
      for (const double theta : {0.9, 0.95, 0.99}) {
        Point point = usual(experiment);
        point.theta = theta;
        measure(point);
      }
    } else if (experiment == "nodes") {
      for (const std::size_t nodes : {300, 900, 1500, 2100, 2700, 3300, 3900}) {
        Point point = usual(experiment);
        point.limits.nodes_per_set = nodes;
        measure(point);
      }
    } else {
      for (std::size_t sets = 0; sets <= 3; ++sets) {
        Point point = usual(experiment);
        point.limits.sets = sets;
        measure(point);
      }
    }
  }
  [[nodiscard]] std::uint64_t measurements() const { return measurements_; }

 private:
  [[nodiscard]] Point usual(const std::string& experiment) const {
    Point point{experiment, options_.keys, kTheta, 0, {}};
    point.limits.ranges = options_.ranges;
    point.limits.sets = options_.sets;
    point.limits.nodes_per_set = options_.nodes_per_set;
    return point;
  }

  void measure(const Point& point) {
    progress_.show(fmt::format("{}: {} keys", point.workload, point.keys));
    auto accesses = scattered_ranks(point.keys, point.theta, options_.seed);
    const RankTree tree = make_rank_tree(accesses, options_.fanout);
    const base::Stopwatch watch;
    const dataplane::Compiled compiled = dataplane::compile(tree.tree, point.limits);
    const std::uint64_t compile_ns = watch.elapsed_ns();
    if (point.changed != 0) {
      const auto others = scattered_ranks(point.keys, point.theta, options_.seed + 1);
      for (std::uint64_t i = 0; i < point.keys; ++i) {
        accesses[i] =
            static_cast<std::uint64_t>(static_cast<double>(accesses[i]) * (1 - point.changed) +
                                       static_cast<double>(others[i]) * point.changed);
      }
    }
    print(point, tree, compiled, count_trips(tree, compiled.tables, accesses), compile_ns);
  }

  void print(const Point& point, const RankTree& tree, const dataplane::Compiled& compiled,
             const Trips& trips, std::uint64_t compile_ns) {
    progress_.clear();
    ++measurements_;
    const std::uint32_t without = tree.levels + 1;
    if (options_.json) {
      Json line;
      line["bench"] = "in-network";
      line["target"] = "tables";
      line["workload"] = point.workload;
      line["keys"] = point.keys;
      line["fanout"] = options_.fanout;
      line["theta"] = point.theta;
      line["changed"] = point.changed;
      line["ranges"] = point.limits.ranges;
      line["sets"] = point.limits.sets;
      line["nodes_per_set"] = point.limits.nodes_per_set;
      line["threads"] = 1;
      line["seed"] = options_.seed;
      line["ops"] = point.keys;
      line["round_trips_per_op"] = rounded(trips.mean);
      line["round_trips_p99"] = trips.p99;
      line["round_trips_without"] = without;
      line["shares"] = Json::array();
      for (const double share : trips.shares) line["shares"].push_back(rounded(share));
      line["merged_nodes"] = compiled.merged;
      line["compile_ns"] = compile_ns;
      line["result_hash"] = fmt::format("{:016x}", std::bit_cast<std::uint64_t>(trips.mean));
      return print_line(out_, line);
    }
    table_.row({point.workload, std::to_string(point.keys), fmt::format("{:.2f}", point.theta),
                fmt::format("{:.2f}", point.changed), std::to_string(point.limits.ranges),
                std::to_string(point.limits.sets), std::to_string(point.limits.nodes_per_set),
                std::to_string(without), fmt::format("{:.2f}", trips.mean),
                std::to_string(trips.p99), fmt::format("{:.1f} %", trips.shares[1] * 100),
                fmt::format("{:.1f}", static_cast<double>(compile_ns) * 1e-6)});
  }

  const InNetworkOptions& options_;
  std::ostream& out_;
  Progress progress_;
  Table table_;
  std::uint64_t measurements_ = 0;
};

}  // namespace

std::string in_network_experiment_names() {
  std::string names;
  for (const char* const name : kExperiments) {
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

std::optional<std::string> problem_of(const InNetworkOptions& options) {
  for (const std::string& experiment : options.experiments) {
    if (std::ranges::find(kExperiments, experiment) == kExperiments.end()) {
      return fmt::format("--experiment: '{}' is not one of: {}", experiment,
                         in_network_experiment_names());
    }
  }
  if (options.keys < 2 || options.keys > 100'000'000) return "--keys must be 2 to 100000000";
  if (options.fanout < 2 || options.fanout > 1024) return "--fanout must be 2 to 1024";
  if (options.ranges < 1 || options.ranges > 65536) return "--ranges must be 1 to 65536";
  if (options.sets > 8) return "--sets must be 0 to 8";
  if (options.nodes_per_set < 1 || options.nodes_per_set > 1'000'000) {
    return "--nodes-per-set must be 1 to 1000000";
  }
  return std::nullopt;
}

int run_in_network(const InNetworkOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  InNetworkRun run(options, output);
  for (const char* const name : kExperiments) {
    const bool wanted = options.experiments.empty() ||
                        std::ranges::find(options.experiments, name) != options.experiments.end();
    if (wanted) run.run(name);
  }
  print_measurements(output.out, "in-network", run.measurements(), options.json);
  return 0;
}

}  // namespace espalier::bench
