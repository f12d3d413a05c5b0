// SPDX-License-Identifier: Apache-2.0
#include "bench/run_switch.hpp"

#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "bench/ethernet_model.hpp"
#include "bench/figure_points.hpp"
#include "bench/report.hpp"
#include "bench/switch_experiments.hpp"

namespace espalier::bench {
namespace {

struct SwitchExperiment {
  const char* name;
  SwitchOutcome (*run)(const SwitchRunOptions& options, const Output& output);
};
constexpr std::array<SwitchExperiment, 8> kSwitchExperiments{{{"gets", run_switch_gets},
                                                              {"parts", run_switch_parts},
                                                              {"hints", run_switch_hints},
                                                              {"hops", run_switch_hops},
                                                              {"fat-tree", run_switch_fat_tree},
                                                              {"function", run_switch_function},
                                                              {"forward", run_switch_forward},
                                                              {"install", run_switch_install}}};

bool is_wanted(const SwitchRunOptions& options, std::string_view name) {
  if (!options.experiments.empty()) {
    return std::ranges::find(options.experiments, name) != options.experiments.end();
  }
  return options.node_address.empty() || name == "gets";
}

std::optional<std::string> problem_of_experiments(const SwitchRunOptions& options) {
  for (const std::string& each : options.experiments) {
    if (std::ranges::find(kSwitchExperiments, each, &SwitchExperiment::name) ==
        kSwitchExperiments.end()) {
      return fmt::format("--experiment: '{}' is not one of: {}", each, switch_experiment_names());
    }
    if (!options.node_address.empty() && each != "gets") {
      return fmt::format("--node-address is of gets; {} has a switch of its own", each);
    }
  }
  for (const std::string& figure : options.figures) {
    const bool of_hops = std::ranges::find(kFigures, figure) != kFigures.end();
    const bool of_tree = std::ranges::find(kEthernetFigures, figure) != kEthernetFigures.end();
    if (!of_hops && !of_tree) {
      return fmt::format("--figure: '{}' is not one of: {}, {}", figure, figure_names(),
                         ethernet_figure_names());
    }
    if (of_hops && !is_wanted(options, "hops")) return figure + " is of hops";
    if (of_tree && !is_wanted(options, "fat-tree")) return figure + " is of fat-tree";
  }
  if (options.frames < 64 || options.frames > 10'000'000'000) {
    return "--frames must be 64 to 10000000000";
  }
  if (options.updates < 1 || options.updates > 1'000'000) return "--updates must be 1 to 1000000";
  if (options.installs < 1 || options.installs > 10'000) return "--installs must be 1 to 10000";
  if (options.model_trip_ns < 1 || options.model_trip_ns > 1'000'000'000) {
    return "--model-trip must be 1 to 1000000000";
  }
  return std::nullopt;
}

}  // namespace

std::string switch_experiment_names() {
  std::string names;
  for (const SwitchExperiment& each : kSwitchExperiments) {
    if (!names.empty()) names += ", ";
    names += each.name;
  }
  return names;
}

std::optional<std::string> problem_of(const SwitchRunOptions& options) {
  if (auto problem = problem_of_experiments(options)) return problem;
  if (options.keys < 2 || options.keys > 100'000'000) return "--keys must be 2 to 100000000";
  if (options.range_keys < 1 || options.range_keys > options.keys) {
    return "--range-keys must be 1 to --keys";
  }
  if (options.value_bytes > 65536) return "--value-bytes must be 0 to 65536";
  if (options.node_bytes < 512 || options.node_bytes > 65536 ||
      (options.node_bytes & (options.node_bytes - 1)) != 0) {
    return "--node-bytes must be a power of two from 512 to 65536";
  }
  if (options.ops < 4 || options.ops > 100'000'000) return "--ops must be 4 to 100000000";
  if (options.in_flight < 1 || options.in_flight > 256) return "--in-flight must be 1 to 256";
  if (options.rounds < 1 || options.rounds > 1000) return "--rounds must be 1 to 1000";
  if (options.ranges < 1 || options.ranges > 30'000) return "--ranges must be 1 to 30000";
  if (options.sets > 8) return "--sets must be 0 to 8";
  if (options.nodes_per_set < 1 || options.nodes_per_set > 100'000) {
    return "--nodes-per-set must be 1 to 100000";
  }
  if (options.write_percent > 90) return "--writes must be 0 to 90";
  if (options.delay_ms < 1 || options.delay_ms > 60'000) return "--delay must be 1 to 60000";
  if (!options.node_address.empty() && !options.node_address.starts_with("roce")) {
    return "--node-address must be one of packets, such as roce+memif:PATH";
  }
  return std::nullopt;
}

int run_switch(const SwitchRunOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  SwitchOutcome all;
  for (const SwitchExperiment& each : kSwitchExperiments) {
    if (!is_wanted(options, each.name)) continue;
    const SwitchOutcome outcome = each.run(options, output);
    all.measurements += outcome.measurements;
    all.right = all.right && outcome.right;
  }
  print_measurements(output.out, "switch", all.measurements, options.json);
  if (all.right) return 0;
  fmt::print(
      output.err,
      "espalier-bench: the switch lost frames, or led some astray: see dropped and misrouted "
      "of the lines\n");
  return 1;
}

}  // namespace espalier::bench
