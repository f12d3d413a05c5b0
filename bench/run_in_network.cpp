// SPDX-License-Identifier: Apache-2.0
#include "bench/run_in_network.hpp"

#include <fmt/ostream.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "base/clock.hpp"
#include "bench/figure_points.hpp"
#include "bench/progress.hpp"
#include "bench/rank_tree.hpp"
#include "bench/report.hpp"
#include "dataplane/compiler.hpp"

namespace espalier::bench {
namespace {

double rounded_to_four_places(double value) { return std::round(value * 1e4) / 1e4; }

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
                            {"model us", 8},
                            {"compile ms", 10}}) {}

  void run(const char* figure) {
    FigurePoint usual;
    usual.keys = options_.keys;
    usual.limits.ranges = options_.ranges;
    usual.limits.sets = options_.sets;
    usual.limits.nodes_per_set = options_.nodes_per_set;
    for (const FigurePoint& point : points_of(figure, usual)) measure(point);
  }
  [[nodiscard]] std::uint64_t measurements() const { return measurements_; }

 private:
  void measure(const FigurePoint& point) {
    progress_.show(fmt::format("{}: {} keys", point.figure, point.keys));
    const FigureRequests requests = requests_of(point, options_.fanout, options_.seed);
    const base::Stopwatch watch;
    const dataplane::Compiled compiled = dataplane::compile(requests.tree.tree, point.limits);
    const std::uint64_t compile_ns = watch.elapsed_ns();
    print(point, requests.tree, compiled,
          count_trips(requests.tree, compiled.tables, requests.accesses), compile_ns);
  }

  void print(const FigurePoint& point, const RankTree& tree, const dataplane::Compiled& compiled,
             const Trips& trips, std::uint64_t compile_ns) {
    progress_.clear();
    ++measurements_;
    const std::uint32_t without = tree.levels + 1;
    const auto trip_ns = static_cast<double>(options_.model_trip_ns);
    if (options_.json) {
      Json line;
      line["bench"] = "in-network";
      line["target"] = "tables";
      line["workload"] = point.figure;
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
      line["round_trips_per_op"] = rounded_to_four_places(trips.mean);
      line["round_trips_p99"] = trips.p99;
      line["round_trips_without"] = without;
      line["model_trip_ns"] = options_.model_trip_ns;
      line["model_latency_ns"] = rounded_to_four_places(trips.mean) * trip_ns;
      line["model_latency_ns_p99"] = trips.p99 * trip_ns;
      line["model_latency_ns_without"] = without * trip_ns;
      line["model_ops_per_second"] = 1e9 / (rounded_to_four_places(trips.mean) * trip_ns);
      line["model_ops_per_second_without"] = 1e9 / (without * trip_ns);
      line["model_latency_ratio"] = rounded_to_four_places(trips.mean) / without;
      line["model_ops_per_second_ratio"] = without / rounded_to_four_places(trips.mean);
      line["shares"] = Json::array();
      for (const double share : trips.shares)
        line["shares"].push_back(rounded_to_four_places(share));
      line["merged_nodes"] = compiled.merged;
      line["compile_ns"] = compile_ns;
      line["result_hash"] = fmt::format("{:016x}", std::bit_cast<std::uint64_t>(trips.mean));
      return print_line(out_, line);
    }
    table_.row({point.figure, std::to_string(point.keys), fmt::format("{:.2f}", point.theta),
                fmt::format("{:.2f}", point.changed), std::to_string(point.limits.ranges),
                std::to_string(point.limits.sets), std::to_string(point.limits.nodes_per_set),
                std::to_string(without), fmt::format("{:.2f}", trips.mean),
                std::to_string(trips.p99), fmt::format("{:.1f} %", trips.shares[1] * 100),
                fmt::format("{:.1f}", trips.mean * trip_ns * 1e-3),
                fmt::format("{:.1f}", static_cast<double>(compile_ns) * 1e-6)});
  }

  const InNetworkOptions& options_;
  std::ostream& out_;
  Progress progress_;
  Table table_;
  std::uint64_t measurements_ = 0;
};

}  // namespace

std::optional<std::string> problem_of(const InNetworkOptions& options) {
  for (const std::string& experiment : options.experiments) {
    if (std::ranges::find(kFigures, experiment) == kFigures.end()) {
      return fmt::format("--experiment: '{}' is not one of: {}", experiment, figure_names());
    }
  }
  if (options.keys < 2 || options.keys > 100'000'000) return "--keys must be 2 to 100000000";
  if (options.fanout < 2 || options.fanout > 1024) return "--fanout must be 2 to 1024";
  if (options.ranges < 1 || options.ranges > 65536) return "--ranges must be 1 to 65536";
  if (options.sets > 8) return "--sets must be 0 to 8";
  if (options.nodes_per_set < 1 || options.nodes_per_set > 1'000'000) {
    return "--nodes-per-set must be 1 to 1000000";
  }
  if (options.model_trip_ns < 1 || options.model_trip_ns > 1'000'000'000) {
    return "--model-trip must be 1 to 1000000000";
  }
  return std::nullopt;
}

int run_in_network(const InNetworkOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  InNetworkRun run(options, output);
  for (const char* const name : kFigures) {
    const bool wanted = options.experiments.empty() ||
                        std::ranges::find(options.experiments, name) != options.experiments.end();
    if (wanted) run.run(name);
  }
  print_measurements(output.out, "in-network", run.measurements(), options.json);
  return 0;
}

}  // namespace espalier::bench
