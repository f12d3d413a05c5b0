// SPDX-License-Identifier: Apache-2.0
#include "bench/run_in_network.hpp"

#include <fmt/format.h>

#include <bit>

#include "base/clock.hpp"
#include "bench/benchmark.hpp"
#include "bench/figure_points.hpp"
#include "bench/rank_tree.hpp"
#include "dataplane/compiler.hpp"

namespace espalier::bench {
namespace {

Json figure_line(const InNetworkOptions& options, const FigurePoint& point) {
  const FigureRequests requests = requests_of(point, options.fanout, options.seed);
  const base::Stopwatch watch;
  const dataplane::Compiled compiled = dataplane::compile(requests.tree.tree, point.limits);
  const std::uint64_t compile_ns = watch.elapsed_ns();
  const Trips trips = count_trips(requests.tree, compiled.tables, requests.accesses);
  const double mean = rounded_to_four_places(trips.mean);
  const std::uint32_t without = requests.tree.levels + 1;
  const auto trip_ns = static_cast<double>(options.model_trip_ns);
  Json shares = Json::array();
  for (const double share : trips.shares) shares.push_back(rounded_to_four_places(share));
  return {{"target", "tables"},
          {"workload", point.figure},
          {"keys", point.keys},
          {"fanout", options.fanout},
          {"theta", point.theta},
          {"changed", point.changed},
          {"ranges", point.limits.ranges},
          {"sets", point.limits.sets},
          {"nodes_per_set", point.limits.nodes_per_set},
          {"threads", 1},
          {"seed", options.seed},
          {"ops", point.keys},
          {"round_trips_per_op", mean},
          {"round_trips_p99", trips.p99},
          {"round_trips_without", without},
          {"model_trip_ns", options.model_trip_ns},
          {"model_latency_ns", mean * trip_ns},
          {"model_latency_ns_p99", trips.p99 * trip_ns},
          {"model_latency_ns_without", without * trip_ns},
          {"model_ops_per_second", 1e9 / (mean * trip_ns)},
          {"model_ops_per_second_without", 1e9 / (without * trip_ns)},
          {"model_latency_ratio", mean / without},
          {"model_ops_per_second_ratio", without / mean},
          {"shares", std::move(shares)},
          {"merged_nodes", compiled.merged},
          {"compile_ns", compile_ns},
          {"result_hash", hex(std::bit_cast<std::uint64_t>(trips.mean))}};
}

void run_figure(const InNetworkOptions& options, const char* figure, Report& report) {
  report.table({{"experiment", -10, "workload"},
                {"keys", 9, "keys"},
                {"skew", 5, "theta", 2},
                {"changed", 7, "changed", 2},
                {"ranges", 6, "ranges"},
                {"sets", 4, "sets"},
                {"nodes", 6, "nodes_per_set"},
                {"without", 7, "round_trips_without"},
                {"READs", 6, "round_trips_per_op", 2},
                {"p99", 4, "round_trips_p99"},
                {"model us", 8, "model_latency_ns", 1, 1e-3},
                {"compile ms", 10, "compile_ns", 1, 1e-6}});
  FigurePoint usual;
  usual.keys = options.keys;
  usual.limits.ranges = options.ranges;
  usual.limits.sets = options.sets;
  usual.limits.nodes_per_set = options.nodes_per_set;
  for (const FigurePoint& point : points_of(figure, usual)) {
    report.progress().show(fmt::format("{}: {} keys", point.figure, point.keys));
    report.line(figure_line(options, point));
  }
}

}  // namespace

void InNetworkOptions::declare(OptionRows& rows) {
  rows.number("--keys", keys, {2, 100'000'000}, "of the tree; scale: half to five times as many");
  rows.number("--fanout", fanout, {2, 1024}, "children of a node");
  rows.number("--ranges", ranges, {1, 65536}, "of the fat root");
  rows.number("--sets", sets, {0, 8}, "layers of nodes below it");
  rows.number("--nodes-per-set", nodes_per_set, {1, 1'000'000}, "nodes in each");
  rows.number("--model-trip", model_trip_ns, {1, 1'000'000'000},
              "nanoseconds of a trip, for model_... (16100 as the paper has)");
  rows.number("--seed", seed, {}, "of how ranks are scattered over keys");
  rows.json(*this);
}

std::vector<ExperimentRow> InNetworkOptions::experiment_rows() const {
  std::vector<ExperimentRow> rows;
  for (const char* const figure : kFigures) {
    rows.push_back(
        {figure, {}, [this, figure](Report& report) { run_figure(*this, figure, report); }});
  }
  return rows;
}

}  // namespace espalier::bench
