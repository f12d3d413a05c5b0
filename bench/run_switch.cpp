// SPDX-License-Identifier: Apache-2.0
#include "bench/run_switch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "bench/benchmark.hpp"
#include "bench/ethernet_model.hpp"
#include "bench/figure_points.hpp"
#include "bench/node_size.hpp"
#include "bench/switch_experiments.hpp"

namespace espalier::bench {
namespace {

constexpr std::string_view kGets = "gets";

bool is_wanted(const SwitchRunOptions& options, std::string_view name) {
  return options.experiments.empty() ? options.node_address.empty()
                                     : std::ranges::count(options.experiments, name) != 0;
}

void require_together(OptionRows& rows, const SwitchRunOptions& options) {
  for (const std::string& each : options.experiments) {
    rows.require(options.node_address.empty() || each == kGets,
                 fmt::format("--node-address is of gets; {} has a switch of its own", each));
  }
  rows.require(options.node_address.empty() || options.node_address.starts_with("roce"),
               "--node-address must be one of packets, such as roce+memif:PATH");
  for (const std::string& figure : options.figures) {
    const bool of_hops = std::ranges::find(kFigures, figure) != kFigures.end();
    const bool of_tree = std::ranges::find(kEthernetFigures, figure) != kEthernetFigures.end();
    rows.require(of_hops || of_tree, fmt::format("--figure: '{}' is not one of: {}, {}", figure,
                                                 figure_names(), ethernet_figure_names()));
    rows.require(!of_hops || is_wanted(options, "hops"), figure + " is of hops");
    rows.require(!of_tree || is_wanted(options, "fat-tree"), figure + " is of fat-tree");
  }
}

}  // namespace

Json line_of_frames(const SwitchRunOptions& options, const char* target, const char* workload) {
  Json line;
  line["target"] = target;
  line["workload"] = workload;
  line["keys"] = options.keys;
  line["ranges"] = options.ranges;
  line["sets"] = options.sets;
  line["nodes_per_set"] = options.nodes_per_set;
  line["threads"] = 1;
  line["seed"] = options.seed;
  line["ops"] = options.frames;
  line["rounds"] = options.rounds;
  return line;
}

void SwitchRunOptions::declare(OptionRows& rows) {
  rows.texts("--figure", figures,
             "hops: the points of these of the paper's figures, " + figure_names() +
                 "; by default the one point that the options name; fat-tree: " +
                 ethernet_figure_names() + "; by default all");
  rows.node_address(node_address,
                    "where clients come to a switch that runs, as roce+memif:PATH: gets alone "
                    "(default: node, switch and controller of the run's own)");
  rows.text("--map", map, "the map there, which has the keys");
  rows.number("--keys", keys, {2, 100'000'000},
              "of the run's own map or tree; of another map, as many at most");
  rows.number("--value-bytes", value_bytes, {0, 65536},
              "of the run's own map; hops: of its leaves, 4000 at most");
  rows.number("--node-bytes", node_bytes, {}, "of the run's own map");
  rows.require(is_node_size(node_bytes), kNoNodeSize);
  rows.number("--ops", ops, {4, 100'000'000},
              "gets and hops: gets of each way in each round; parts: scans");
  rows.number("--range-keys", range_keys, {1, keys}, "parts: keys of each scan");
  rows.number("--in-flight", in_flight, {1, 256}, "gets in flight, for the rate");
  rows.number("--frames", frames, {64, 10'000'000'000},
              "function and forward: frames of each kind in each round");
  rows.number("--updates", updates, {1, 1'000'000}, "install: nodes that move");
  rows.number("--installs", installs, {1, 10'000},
              "install: compilations, and whole tables that are replaced");
  rows.number("--model-trip", model_trip_ns, {1, 1'000'000'000},
              "nanoseconds of a trip, for model_... (16100 as the paper has)");
  rows.number("--rounds", rounds, {1, 1000}, "in which the ways take turns");
  rows.number("--ranges", ranges, {1, 30'000}, "of the fat root");
  rows.number("--sets", sets, {0, 8}, "layers of nodes below it");
  rows.number("--nodes-per-set", nodes_per_set, {1, 100'000}, "nodes in each");
  rows.number("--writes", write_percent, {0, 90}, "of 100 requests, in a way of its own; 0: none");
  rows.number("--delay", delay_ms, {1, 60'000},
              "milliseconds between two looks of the run's own controller at what has moved");
  rows.number("--seed", seed, {}, "of the keys that are asked for");
  rows.json(*this);
  require_together(rows, *this);
}

std::vector<ExperimentRow> SwitchRunOptions::experiment_rows() const {
  const auto row = [this](std::string_view name,
                          void (*run)(const SwitchRunOptions&, Report&)) -> ExperimentRow {
    const bool of_another_switch = !node_address.empty() && name != kGets;
    return {name, {}, [this, run](Report& report) { run(*this, report); }, of_another_switch};
  };
  return {row(kGets, run_switch_gets),          row("parts", run_switch_parts),
          row("hints", run_switch_hints),       row("hops", run_switch_hops),
          row("fat-tree", run_switch_fat_tree), row("function", run_switch_function),
          row("forward", run_switch_forward),   row("install", run_switch_install)};
}

}  // namespace espalier::bench
