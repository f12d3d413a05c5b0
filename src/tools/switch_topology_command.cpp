// SPDX-License-Identifier: Apache-2.0
// espalier switch topology: has the tables of all switches of a topology follow a map over several
// nodes, and restarts the switches one by one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "cmdline/number_option.hpp"
#include "dataplane/topology_text.hpp"
#include "index/controller/topology_run.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/numbers.hpp"
#include "tools/switch_reach.hpp"

namespace espalier::tools {
namespace {

using client::TopologyRun;
using cmdline::escaped;
using dataplane::Topology;

constexpr std::uint64_t kTopologyNsPerMs = 1'000'000;
// Leases are renewed in rounds.
constexpr std::uint32_t kTopologyEveryMsMax = 250;

struct TopologyOptions {
  std::string file;
  std::optional<std::string> map;
  std::uint32_t every_ms = 10;
  bool restarts = false;
  bool json = false;

  [[nodiscard]] std::string name() const { return map.value_or(std::string(kDefaultMap)); }
};

/// What it says while it runs: a line when something is another than before.
class TopologyReports {
 public:
  TopologyReports(Environment& environment, const TopologyOptions& options,
                  const Topology& topology)
      : environment_(environment), options_(options), topology_(topology) {}

  void done(const TopologyRun::Round& round, const TopologyRun& run) {
    changes_ += round.changes;
    installed_ += round.installed;
    trouble_of_node_.clear();
    if (round.installed != 0) say_installed(round);
    std::set<std::string> troubles;
    for (const TopologyRun::Fault& fault : run.faults()) troubles.insert(in_words(fault));
    for (const std::string& each : troubles) {
      if (!troubles_.contains(each)) warn(each);
    }
    troubles_ = std::move(troubles);
  }
  void trouble(const TopologyRun::Fault& fault) {
    const std::string words = in_words(fault);
    if (words != trouble_of_node_) warn(words);  // else the same goes on
    trouble_of_node_ = words;
  }
  /// The line that has a switch restarted.
  void restart(std::size_t number) {
    const Topology::Switch& of = topology_.switches[number];
    if (options_.json) {
      print({{"event", "restart"}, {"switch", of.name}, {"control", of.control}});
    } else {
      say(fmt::format("restart {} {}\n", escaped(of.name), escaped(of.control)));
    }
  }
  void restarted() {
    if (options_.json) {
      nlohmann::ordered_json line;
      line["event"] = "restarted";
      return print(line);
    }
    say(fmt::format("restarted: all {} switches\n", topology_.switches.size()));
  }
  void stopped(const std::string& why) {
    if (options_.json) return;
    say(fmt::format("stopped ({}): {} times installed, {} entries changed\n", why,
                    format_count(installed_), format_count(changes_)));
  }

  [[nodiscard]] std::string in_words(const TopologyRun::Fault& fault) const {
    if (fault.side == TopologyRun::Fault::Side::node) {
      return fmt::format("map '{}' at node {}, {}, cannot be read: {}", escaped(options_.name()),
                         fault.number, escaped(topology_.nodes[fault.number]),
                         reason(fault.error));
    }
    const Topology::Switch& of = topology_.switches[fault.number];
    if (!fault.words.empty()) {
      return fmt::format("switch {} at '{}' refuses: {}", escaped(of.name), escaped(of.control),
                         escaped(fault.words));
    }
    return fmt::format("switch {} does not answer at '{}'", escaped(of.name),
                       escaped(of.control));
  }

 private:
  void say_installed(const TopologyRun::Round& round) {
    if (options_.json) {
      return print({{"event", "installed"},
                    {"compiled", round.compiled},
                    {"switches", round.installed},
                    {"out_of_reach", round.out_of_reach},
                    {"entries_changed", changes_}});
    }
    say(fmt::format("installed: {} of {} switches, {} out of reach\n", round.installed,
                    topology_.switches.size(), round.out_of_reach));
  }
  void print(const nlohmann::ordered_json& line) { say(line.dump() + '\n'); }
  void say(const std::string& text) {
    environment_.out << text;
    environment_.out.flush();
  }
  void warn(const std::string& words) {
    print_note(environment_, "warning", words + "; it is tried again");
  }

  Environment& environment_;
  const TopologyOptions& options_;
  const Topology& topology_;
  std::string trouble_of_node_;
  std::set<std::string> troubles_;  // of switches
  std::uint64_t changes_ = 0;
  std::uint64_t installed_ = 0;
};

Outcome<Topology> topology_of(Environment& environment, const std::string& path) {
  const auto text = text_of_file(environment, path);
  if (!text) return std::unexpected(text.error());
  auto topology = dataplane::parse_topology(*text);
  if (topology) return *std::move(topology);
  const dataplane::TextFault& fault = topology.error();
  const std::string where = fault.line == 0 ? "" : fmt::format("line {}: ", fault.line);
  return failed(fmt::format("'{}': {}{}", escaped(path), where, escaped(fault.reason)),
                "docs/formats/topology.md says how a topology is written.");
}

// What will not be better in the next round.
bool ends_all(const Error& error) {
  return error.code == Code::unsupported || error.code == Code::wrong_kind ||
         error.code == Code::invalid_argument;
}

std::unexpected<Failure> topology_failure(const TopologyReports& reports,
                                          const TopologyRun::Fault& fault) {
  if (fault.error.code != Code::unsupported) return failed(reports.in_words(fault));
  return failed(reports.in_words(fault),
                "A controller reads the memory of nodes over packets: start each with "
                "--node-fabric roce+memif:PATH --node-one-sided on, and name roce+memif:PATH in "
                "the topology.");
}

Outcome<TopologyRun::Options> options_of(Environment& environment, const TopologyOptions& options,
                                         const Topology& topology) {
  TopologyRun::Options made;
  for (const std::string& node : topology.nodes) {
    auto address = client::parse_node_address(node);
    if (!address) {
      return failed(fmt::format("'{}': '{}' is no address of a node", escaped(options.file),
                                escaped(node)),
                    "Name each node as its --node-fabric does, as roce+memif:PATH.");
    }
    made.nodes.push_back(*std::move(address));
  }
  for (const Topology::Switch& each : topology.switches) made.controls.push_back(each.control);
  made.budget = topology.budget;
  made.map = options.name();
  const auto connecting = connect_options(environment);
  if (!connecting) return std::unexpected(connecting.error());
  made.connecting = *connecting;
  return made;
}

Outcome<int> control_topology(Environment& environment, const TopologyOptions& options) {
  const auto topology = topology_of(environment, options.file);
  if (!topology) return std::unexpected(topology.error());
  auto running = options_of(environment, options, *topology);
  if (!running) return std::unexpected(running.error());
  const auto stop = environment.notice_stop();
  if (stop == nullptr) return failed("no controller can run here, for nothing could stop it");
  TopologyReports reports(environment, options, *topology);
  TopologyRun run(*std::move(running));
  if (options.restarts) {
    run.restart_all([&reports](std::size_t number) { reports.restart(number); });
  }
  for (;;) {
    const bool restarted_before = !run.is_restarting();
    const auto done = run.round();
    if (!done && ends_all(done.error().error)) return topology_failure(reports, done.error());
    if (!done) {
      reports.trouble(done.error());
    } else {
      reports.done(*done, run);
    }
    if (!restarted_before && !run.is_restarting()) reports.restarted();
    const std::string why = stop->wait(options.every_ms * kTopologyNsPerMs);
    if (why.empty()) continue;
    run.clear();
    reports.stopped(why);
    return kOk;
  }
}

}  // namespace

void add_switch_topology(CLI::App& above, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<TopologyOptions>();
  CLI::App& command = *above.add_subcommand(
      "topology", "Have the tables of all switches of a topology follow a map");
  command
      .add_option_function<std::string>(
          "FILE", [options](const std::string& text) { options->file = text; },
          "The topology: switches, links and nodes, as docs/formats/topology.md writes it")
      ->type_name("")
      ->required();
  add_map_name_option(command, options->map);
  cmdline::add_number(command, "--every", options->every_ms,
                      "Milliseconds between two looks at what has moved",
                      {1, kTopologyEveryMsMax});
  command.add_flag("--restarts", options->restarts,
                   "Name the switches on standard output one by one, for them to be restarted: the "
                   "next when the one before was gone, and all have their tables again");
  add_json_option(command, options->json);
  command.footer(
      "One controller in place of one for each node: it reads the trees of all nodes, compiles\n"
      "them together, and gives each switch its part, until SIGTERM or SIGINT. A switch that is\n"
      "out of reach keeps no other waiting, and gets everything when it is back. A node that is\n"
      "out of reach has all switches forget the map until it is there again.\n"
      "Each switch runs by itself: the root with --stands first, those before nodes with --stands\n"
      "last, and with --number where the numbers of their nodes are others than 0, 1, 2 ...\n"
      "With --restarts a line is \"restart NAME CONTROL\", and the last one \"restarted: ...\".\n"
      "Examples:\n"
      "  espalier switch topology fat-tree.txt --map words\n"
      "  espalier switch topology fat-tree.txt --restarts --json\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment, [options, &environment] {
      return control_topology(environment, *options);
    });
  });
}

}  // namespace espalier::tools
