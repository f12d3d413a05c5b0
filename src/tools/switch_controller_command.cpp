// SPDX-License-Identifier: Apache-2.0
// espalier switch controller: has the tables of a switch follow a map of a node.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cmdline/number_option.hpp"
#include "dataplane/memif_switch.hpp"
#include "index/controller/index_controller.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/numbers.hpp"
#include "tools/switch_reach.hpp"

namespace espalier::tools {
namespace {

using client::IndexController;
using cmdline::escaped;

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kReadEveryNs = 100 * kNsPerMs;  // between two looks at the whole tree
// What one switch holds: the range tables number with 16 bits, and entries are kept twice.
constexpr std::uint64_t kRangesMax = 30'000;
constexpr std::uint64_t kSetsMax = dataplane::TableLimits{}.nodes_of_set.size();
constexpr std::uint64_t kNodesMax = 80'000;  // in all sets: 750 bytes of text each, at most
// The controller's lease is renewed in its rounds.
constexpr std::uint32_t kEveryMsMax = 250;

struct ControllerOptions {
  std::optional<std::string> at;
  std::optional<std::string> map;
  std::vector<std::string> controls;
  dataplane::TableLimits limits;
  std::vector<std::size_t> nodes;  // of each layer; the last number is for those below, too
  std::vector<std::size_t> row;    // layers of each switch of a row; empty: each has all tables
  std::string trace;               // a file; empty: none
  std::uint32_t every_ms = 10;
  std::uint32_t number = 0;
  bool has_card = false;
  bool json = false;
};

/// What it says of itself while it runs: a line when something is another than before.
class Reports {
 public:
  Reports(Environment& environment, const ControllerOptions& options, std::string address)
      : environment_(environment), options_(options), address_(std::move(address)) {}

  void installed(const IndexController& controller) {
    trouble_.clear();
    const dataplane::IndexTables& tables = controller.follower()->tables();
    const std::uint64_t nodes = nodes_in_sets(tables);
    ++installed_;
    if (options_.json) {
      const nlohmann::ordered_json line{{"event", "installed"},
                                        {"tree_nodes", controller.follower()->nodes()},
                                        {"ranges", tables.ways.size()},
                                        {"nodes", nodes},
                                        {"entries_changed", controller.changes()},
                                        {"moves", controller.counts().moves},
                                        {"trees_read", controller.counts().trees},
                                        {"feed_behind", controller.counts().behind}};
      environment_.out << line.dump() << '\n';
    } else {
      environment_.out << fmt::format(
          "installed: a tree of {} nodes, as {} ranges and {} nodes in sets\n",
          format_count(controller.follower()->nodes()), format_count(tables.ways.size()),
          format_count(nodes));
    }
    environment_.out.flush();
  }
  void well() { trouble_.clear(); }
  void trouble(const IndexController::Fault& fault) {
    const std::string words = in_words(fault);
    if (words == trouble_) return;  // the same goes on
    trouble_ = words;
    print_note(environment_, "warning", words + "; it is tried again");
  }
  void stopped(const IndexController& controller, const std::string& why) {
    if (options_.json) return;
    environment_.out << fmt::format("stopped ({}): {} times installed, {} entries changed\n", why,
                                    format_count(installed_), format_count(controller.changes()));
  }

  [[nodiscard]] std::string in_words(const IndexController::Fault& fault) const {
    if (fault.side == IndexController::Fault::Side::node) {
      return fmt::format("map '{}' at {} cannot be read: {}", escaped(name()), address_,
                         reason(fault.error));
    }
    if (!fault.words.empty()) {
      return fmt::format("the switch at '{}' refuses: {}", escaped(fault.control),
                         escaped(fault.words));
    }
    return fmt::format("no switch answers at '{}'", escaped(fault.control));
  }
  [[nodiscard]] std::string name() const { return options_.map.value_or(std::string(kDefaultMap)); }

 private:
  Environment& environment_;
  const ControllerOptions& options_;
  const std::string address_;
  std::string trouble_;
  std::uint64_t installed_ = 0;
};

// What will not be better in the next round. What a switch refuses may be: the controller before
// this one is forgotten soon.
bool is_final(const IndexController::Fault& fault) {
  if (!fault.words.empty()) return false;
  const Code code = fault.error.code;
  return code == Code::unsupported || code == Code::wrong_kind || code == Code::invalid_argument;
}

std::unexpected<Failure> controller_failure(const Reports& reports,
                                            const IndexController::Fault& fault) {
  const bool node = fault.side == IndexController::Fault::Side::node;
  if (node && fault.error.code == Code::unsupported) {
    return failed(reports.in_words(fault),
                  "A controller reads the node's memory over packets: start the node with "
                  "--node-fabric roce+memif:PATH --node-one-sided on, and give --at "
                  "roce+memif:PATH.");
  }
  if (node && fault.error.code == Code::not_found) {
    return failed(reports.in_words(fault), "espalier map list shows the maps that a node has.");
  }
  if (node) return failed(reports.in_words(fault));
  return failed(reports.in_words(fault),
                "Start one: espalier switch run --clients PATH --node PATH --control PATH.");
}

/// Keys, one for each line, as `espalier` prints them.
Outcome<std::vector<std::string>> keys_of_trace(Environment& environment, const std::string& path) {
  std::vector<std::string> keys;
  if (path.empty()) return keys;
  const auto text = text_of_file(environment, path);
  if (!text) return std::unexpected(text.error());
  std::istringstream lines(*text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    auto key = cmdline::decode(line, cmdline::Encoding::escaped);
    if (!key) {
      return failed(fmt::format("'{}': line {}: {}", escaped(path), number, key.error()));
    }
    keys.push_back(*std::move(key));
  }
  if (keys.empty()) return failed(fmt::format("'{}' has no key", escaped(path)));
  return keys;
}

std::vector<dataplane::HopBudget> hops_of(const ControllerOptions& options) {
  std::vector<dataplane::HopBudget> hops;
  for (const std::size_t sets : options.row) hops.push_back({.sets = sets});
  return hops;
}

Outcome<dataplane::TableLimits> limits_of(const ControllerOptions& options) {
  dataplane::TableLimits limits = options.limits;
  if (!options.row.empty()) {
    if (options.row.size() != options.controls.size()) {
      return misused(fmt::format("--row has {} numbers, and there are {} switches",
                                 options.row.size(), options.controls.size()),
                     "Give one for each --control, in their order from the clients on.");
    }
    const auto row = dataplane::limits_of({.ranges = limits.ranges, .hops = hops_of(options)});
    if (!row) return misused(row.error(), "Give fewer layers to --row.");
    limits.sets = row->sets;
  }
  if (options.nodes.size() > kSetsMax) {
    return misused(fmt::format("--nodes has {} numbers", options.nodes.size()),
                   fmt::format("Give at most {}, one for each layer.", kSetsMax));
  }
  std::ranges::copy(options.nodes, limits.nodes_of_set.begin());
  if (!options.nodes.empty()) limits.nodes_per_set = options.nodes.back();
  std::size_t nodes = 0;
  for (std::size_t set = 0; set < limits.sets; ++set) nodes += limits.nodes_in(set);
  if (nodes > kNodesMax) {
    return misused(
        fmt::format("{} nodes in {} sets are more than a switch takes", nodes, limits.sets),
        fmt::format("Give at most {} nodes in all sets.", kNodesMax));
  }
  return limits;
}

Outcome<int> control(Environment& environment, const ControllerOptions& options) {
  const auto limits = limits_of(options);
  if (!limits) return std::unexpected(limits.error());
  const auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  if (const std::set<std::string> each(options.controls.begin(), options.controls.end());
      each.size() != options.controls.size()) {
    return misused("a switch is named twice", "Give --control once for each switch.");
  }
  auto trace = keys_of_trace(environment, options.trace);
  if (!trace) return std::unexpected(trace.error());
  const auto stop = environment.notice_stop();
  if (stop == nullptr) return failed("no controller can run here, for nobody could stop it");
  const auto connecting = connect_options(environment);
  if (!connecting) return std::unexpected(connecting.error());
  Reports reports(environment, options, *address);
  IndexController controller({.node = *client::parse_node_address(*address),
                              .map = reports.name(),
                              .controls = options.controls,
                              .limits = *limits,
                              .hops = hops_of(options),
                              .number = static_cast<std::uint16_t>(options.number),
                              .has_card = options.has_card,
                              .connecting = *connecting,
                              .trace = *std::move(trace),
                              .read_every_ns = kReadEveryNs});
  for (;;) {
    const auto did = controller.round();
    if (!did && is_final(did.error())) return controller_failure(reports, did.error());
    if (!did) {
      reports.trouble(did.error());
    } else if (*did == IndexController::Did::installed) {
      reports.installed(controller);
    } else {
      reports.well();
    }
    const std::string why = stop->wait(options.every_ms * kNsPerMs);
    if (why.empty()) continue;
    controller.clear();
    reports.stopped(controller, why);
    return kOk;
  }
}

}  // namespace

void add_switch_controller(CLI::App& above, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<ControllerOptions>();
  CLI::App& command =
      *above.add_subcommand("controller", "Have the tables of a switch follow a map");
  add_address_option(command, options->at);
  add_map_name_option(command, options->map);
  add_paths(command, "--control",
            "The socket at which a switch takes tables; again for each switch", options->controls);
  cmdline::add_number(command, "--every", options->every_ms,
                      "Milliseconds between two looks at what has moved", {1, kEveryMsMax});
  cmdline::add_number(command, "--ranges", options->limits.ranges,
                      "Ranges of the fat root, at most", {1, kRangesMax});
  cmdline::add_number(command, "--sets", options->limits.sets, "Layers of nodes below it, at most",
                      {0, kSetsMax});
  cmdline::add_numbers(command, "--nodes", options->nodes,
                       "Nodes of each layer, at most; with commas, of one after another",
                       {1, kNodesMax})
      ->default_str(std::to_string(options->limits.nodes_per_set));
  cmdline::add_numbers(command, "--row", options->row,
                       "The switches stand in a row and share the tables: how many layers each "
                       "has, in the order of --control, with commas; the first has the fat root",
                       {0, kSetsMax});
  cmdline::add_number(command, "--number", options->number,
                      "Which node of a map over several it fills tables for: its place among those "
                      "of switch run, from 0 on",
                      {0, dataplane::MemifSwitch::kNodesMax - 1});
  command.add_flag("--card", options->has_card,
                   "A third party's card serves the node's memory, and no READs by key: the last "
                   "switch redirects those that no table has met to the tree's root");
  add_path(
      command, "--trace",
      "A file of keys that were read, one for each line, by which nodes are chosen, in place of "
      "what the node counts",
      options->trace)
      ->type_name("FILE");
  add_json_option(command, options->json);
  command.footer(
      "Reads the tree of a map by READs of the node's memory, compiles it, follows its leaves, "
      "and\n"
      "tells the switches what is new, until SIGTERM or SIGINT. A switch forgets the map when its\n"
      "controller ends, is killed, or says nothing for three seconds. Controllers of other maps "
      "may\n"
      "fill the same switch; a map has one, or one for each node that it lies on (--number).\n"
      "Answers are right without it and whatever it does, for clients look at what comes; a READ\n"
      "that meets no table is answered by the node.\n"
      "Examples:\n"
      "  espalier switch controller --at roce+memif:/tmp/n.sock --control /tmp/s.sock\n"
      "  espalier switch controller --at roce+memif:/tmp/n.sock --map m --control /tmp/s.sock\n"
      "  espalier switch controller --at roce+memif:/tmp/n.sock --control /tmp/s.sock "
      "--control /tmp/t.sock --row 0,3\n");
  command.callback([options, &environment, &chosen] {
    chosen =
        reporting(environment, [options, &environment] { return control(environment, *options); });
  });
}

}  // namespace espalier::tools
