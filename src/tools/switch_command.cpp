// SPDX-License-Identifier: Apache-2.0
// espalier switch run, install, status: a switch between clients and a node, which redirects READs
// by tables. Its controller has a file of its own, and so have the commands that look at tables.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cmdline/number_option.hpp"
#include "dataplane/memif_switch.hpp"
#include "dataplane/switch_threads.hpp"
#include "node/http_listener.hpp"
#include "tools/asked_numbers.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/fabric_link.hpp"
#include "tools/numbers.hpp"
#include "tools/switch_metrics.hpp"
#include "tools/switch_reach.hpp"

namespace espalier::tools {
namespace {

using cmdline::escaped;
using dataplane::ControlServer;
using dataplane::InstalledFunction;
using dataplane::MemifSwitch;
using dataplane::SwitchControl;
using dataplane::SwitchCounters;

struct SwitchOptions {
  std::vector<std::string> clients;  // for each node
  std::vector<std::string> nodes;
  std::string control;
  std::optional<std::string> tables;
  std::optional<std::string> at;  // of the node, for its numbers
  std::uint32_t metrics_port = 0;
  std::string stands = "alone";  // where, in a row of switches
  bool spin = false;

  [[nodiscard]] MemifSwitch::Options links() const {
    const bool is_alone = stands == "alone";
    MemifSwitch::Options links{clients.front(), nodes.front(), is_alone || stands == "first",
                               is_alone || stands == "last"};
    for (std::size_t i = 1; i < nodes.size(); ++i) links.more.push_back({clients[i], nodes[i]});
    return links;
  }
};

void add_counters(std::string& text, const MemifSwitch& of) {
  const SwitchCounters counters = of.counters();
  const auto add = [&](std::string_view name, std::uint64_t value) {
    text += fmt::format("{} {}\n", name, value);
  };
  add("links", of.links());
  add("links_up", counters.links_up);
  add("links_down", counters.links_down);
  add("frames_to_node", counters.to_node);
  add("frames_to_clients", counters.to_clients);
  add("frames_lost", counters.lost);
  add("reads_passed", counters.reads_passed);
  add("keyed_reads_unknown", counters.keys_unknown);
  add("unknown_key", counters.unknown_key);
  add("reads_carried", counters.carried);
  add("shims_passed", counters.shims_passed);
  add("shims_removed", counters.shims_removed);
  add("shims_dropped", counters.shims_dropped);
  add("gets_hinted", counters.gets_hinted);
  add("redirected", counters.redirected_in_all());
  for (std::size_t sets = 0; sets < counters.redirected.size(); ++sets) {
    add(fmt::format("redirected_by_sets_{}", sets), counters.redirected[sets]);
  }
}

Outcome<void> serve_metrics(node::HttpListener& metrics, std::uint32_t port) {
  if (port == 0) return {};
  const auto started = metrics.start(static_cast<std::uint16_t>(port));
  if (started) return {};
  if (started.error().code == Code::already_exists) {
    return failed(fmt::format("another process listens at port {}", port));
  }
  return failed(fmt::format("cannot listen at port {}: {}", port, reason(started.error())));
}

// What is joined to what, for the line that it begins with.
std::string ways_of(const SwitchOptions& options) {
  if (options.nodes.size() == 1) {
    return fmt::format("clients come to roce+memif:{}, the node is at roce+memif:{}, ",
                       escaped(options.clients.front()), escaped(options.nodes.front()));
  }
  std::string text;
  for (std::size_t i = 0; i < options.nodes.size(); ++i) {
    text += fmt::format("clients of node {} come to roce+memif:{}, it is at roce+memif:{}, ", i,
                        escaped(options.clients[i]), escaped(options.nodes[i]));
  }
  return text;
}

// Each node has clients of its own, and no two sockets are one.
Outcome<void> check_ways(const SwitchOptions& options) {
  if (options.clients.size() != options.nodes.size()) {
    return misused(fmt::format("there are {} of --clients and {} of --node", options.clients.size(),
                               options.nodes.size()),
                   "Give both once for each node, in one order.");
  }
  if (options.nodes.size() > MemifSwitch::kNodesMax) {
    return misused(fmt::format("{} nodes are too many", options.nodes.size()),
                   fmt::format("A switch leads to {} at most.", MemifSwitch::kNodesMax));
  }
  return {};
}

Outcome<int> run_switch(Environment& environment, const SwitchOptions& options) {
  if (const auto good = check_ways(options); !good) return std::unexpected(good.error());
  // Before any thread starts, which would take the signals.
  const auto stop = environment.notice_stop();
  if (stop == nullptr) return failed("no switch can run here, for nobody could stop it");
  InstalledFunction function;
  const auto opened = MemifSwitch::open(options.links(), function);
  if (!opened) return cannot_serve(options.clients.front(), opened.error());
  MemifSwitch& the_switch = **opened;
  SwitchControl control(function,
                        [&the_switch](std::string& text) { add_counters(text, the_switch); });
  if (options.tables) {
    const auto text = text_of_file(environment, *options.tables);
    if (!text) return std::unexpected(text.error());
    if (const auto installed = control.ask("install", *text); !installed) {
      return failed(fmt::format("'{}': {}", escaped(*options.tables), installed.error()));
    }
  }
  const auto server = ControlServer::open(options.control, control);
  if (!server) return cannot_serve(options.control, server.error());
  node::HttpListener metrics(
      [&control] { return switch_metrics_text(control.ask("status", {}).value_or("")); });
  if (const auto served = serve_metrics(metrics, options.metrics_port); !served) {
    return std::unexpected(served.error());
  }
  environment.out << fmt::format("a switch: {}tables by {}\n", ways_of(options),
                                 escaped(options.control));
  environment.out.flush();

  std::optional<dataplane::SwitchThreads> threads(std::in_place, the_switch, **server,
                                                  options.spin);
  const std::string why = stop->wait({});
  threads.reset();
  metrics.stop();
  const SwitchCounters counters = the_switch.counters();
  environment.out << fmt::format("stopped ({}): {} frames to the node, {} to clients, {} lost\n",
                                 why, format_count(counters.to_node),
                                 format_count(counters.to_clients), format_count(counters.lost));
  return kOk;
}

Outcome<int> install_tables(Environment& environment, const SwitchOptions& options) {
  const auto text = text_of_file(environment, *options.tables);
  if (!text) return std::unexpected(text.error());
  auto client = reach_switch(options.control);
  if (!client) return std::unexpected(client.error());
  if (!client->ask("install", *text)) return did_not(*client, options.control);
  environment.out << "installed\n";
  return kOk;
}

/// What READs by key meet at the node, as lines of a status.
Outcome<std::string> status_of_node(Environment& environment, const std::string& address) {
  const auto store = connect(environment, address);
  if (!store) return std::unexpected(store.error());
  const auto numbers = needed_numbers_of(*store, address);
  if (!numbers) return std::unexpected(numbers.error());
  const auto met = [&](std::string_view what) { return numbers->value("index_reads", what); };
  return fmt::format(
      "node_reads_resolved {}\nnode_reads_at_leaves {}\nnode_reads_at_interior_nodes {}\n"
      "node_reads_at_nothing {}\nnode_held_bytes {}\n",
      met("no_table"), met("leaf"), met("interior_node"), met("nothing"),
      numbers->value("memory_leased_bytes"));
}

struct StatusOptions {
  SwitchOptions of;
  bool json = false;
  std::uint32_t every_seconds = 0;  // 0: once
};

Outcome<void> print_status(Environment& environment, const SwitchOptions& options, bool json) {
  auto client = reach_switch(options.control);
  if (!client) return std::unexpected(client.error());
  auto status = client->ask("status");
  if (!status) return did_not(*client, options.control);
  if (options.at) {
    const auto of_node = status_of_node(environment, *options.at);
    if (!of_node) return std::unexpected(of_node.error());
    *status += *of_node;
  }
  nlohmann::ordered_json object;
  std::istringstream lines(*status);
  std::string name;
  std::uint64_t value = 0;
  while (lines >> name >> value) {
    object[name] = value;
    if (!json) environment.out << fmt::format("{:<28} {}\n", name, format_count(value));
  }
  if (json) environment.out << object.dump() << '\n';
  environment.out.flush();
  return {};
}

// Ends with what went wrong, if anything does: a switch that is gone has no numbers.
Outcome<int> show_status(Environment& environment, const StatusOptions& options) {
  const auto stop = options.every_seconds == 0 ? nullptr : environment.notice_stop();
  if (options.every_seconds != 0 && stop == nullptr) {
    return failed("nobody could stop it", "Leave out --every.");
  }
  for (;;) {
    const auto printed = print_status(environment, options.of, options.json);
    if (!printed) return std::unexpected(printed.error());
    if (stop == nullptr ||
        !stop->wait(options.every_seconds * std::uint64_t{1'000'000'000}).empty()) {
      return kOk;
    }
    if (!options.json) environment.out << '\n';
  }
}

void add_run(CLI::App& above, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<SwitchOptions>();
  CLI::App& command = *above.add_subcommand("run", "Forward frames between clients and a node");
  add_paths(command, "--clients",
            "The socket of memif at which clients connect; again for each further node",
            options->clients);
  add_paths(command, "--node",
            "The socket of memif at which the node listens; again for each further node",
            options->nodes);
  add_control(command, options->control);
  command
      .add_option_function<std::string>(
          "--tables", [options](const std::string& text) { options->tables = text; },
          "A file with what to run with at first (default: no tables)")
      ->type_name("FILE");
  command
      .add_option(
          "--stands", options->stands,
          "Where, if several switches in a row share the tables: alone, first, middle, last")
      ->check(CLI::IsMember({"alone", "first", "middle", "last"}).description(""))
      ->type_name("PLACE")
      ->capture_default_str();
  cmdline::add_number(command, "--metrics-port", options->metrics_port,
                      "The port at which Prometheus reads what it counts; 0: none", {0, 65'535});
  command.add_flag("--spin", options->spin, "Never sleep: answers sooner, and takes a core");
  command.footer(
      "Everything goes through untouched but READs by a key that the tables know, which carry a\n"
      "number where an address would be; they get the address of its node. The node listens with\n"
      "--node-fabric roce+memif:PATH, and clients use roce+memif: with the path of --clients.\n"
      "Runs until SIGTERM or SIGINT. Whoever may connect to the sockets may change the tables:\n"
      "they are this user's alone.\n"
      "Of switches in a row each has the socket of the next one's clients as its --node, the "
      "first\n"
      "one runs with --stands first and the last one with --stands last; switch controller --row "
      "fills "
      "them.\n"
      "Where maps lie on several nodes, --clients and --node are there for each, and a "
      "controller:\n"
      "the first node's number is 0. Shards name the sockets of --clients as their addresses.\n"
      "Examples:\n"
      "  espalier switch run --clients /tmp/c.sock --node /tmp/n.sock --control /tmp/s.sock\n"
      "  espalier switch run --clients /tmp/c.sock --node /tmp/d.sock --control /tmp/s.sock "
      "--stands first\n"
      "  espalier switch run --clients /tmp/c0.sock --node /tmp/n0.sock --clients /tmp/c1.sock "
      "--node /tmp/n1.sock --control /tmp/s.sock\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return run_switch(environment, *options); });
  });
}

void add_install(CLI::App& above, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<SwitchOptions>();
  CLI::App& command = *above.add_subcommand("install", "Give a switch other tables");
  command
      .add_option_function<std::string>(
          "FILE", [options](const std::string& text) { options->tables = text; },
          "What it is to run with, as docs/formats/index_tables.md writes it")
      ->type_name("")
      ->required();
  add_control(command, options->control);
  command.footer(
      "All of it takes effect at once, and no frame is lost. Exits with 1 if the tables are not\n"
      "good; then nothing has changed.\n"
      "Examples:\n"
      "  espalier switch install tables.txt --control /tmp/s.sock\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return install_tables(environment, *options); });
  });
}

void add_status(CLI::App& above, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<StatusOptions>();
  CLI::App& command = *above.add_subcommand("status", "Show what a switch knows and does");
  add_control(command, options->of.control);
  add_address_option(command, options->of.at);
  add_json_option(command, options->json);
  cmdline::add_number(command, "--every", options->every_seconds,
                      "Show it again each so many seconds, until SIGTERM or SIGINT; 0: once",
                      {0, 86'400});
  command.footer(
      "redirected_by_sets_N counts READs that so many layers of nodes took part in; with 0 the\n"
      "fat root alone knew where they go. reads_passed counts READs by other keys, and\n"
      "keyed_reads_unknown those of maps that it has no tables of, the last by unknown_key: "
      "clients\n"
      "of another address of the node have other keys than the controller. With --at it\n"
      "shows what READs by key met at the node: node_reads_resolved those that no table had met.\n"
      "Examples:\n"
      "  espalier switch status --control /tmp/s.sock --json\n"
      "  espalier switch status --control /tmp/s.sock --at roce+memif:/tmp/n.sock --every 1\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return show_status(environment, *options); });
  });
}

}  // namespace

void add_switch_command(CLI::App& app, Environment& environment, Action& chosen) {
  CLI::App& command = *app.add_subcommand(
      "switch",
      "A switch that redirects READs: run, controller, install, status, resources, entries");
  command.require_subcommand(1);
  command.footer(
      "Examples:\n"
      "  espalier switch run --clients /tmp/c.sock --node /tmp/n.sock --control /tmp/s.sock\n"
      "  espalier switch status --control /tmp/s.sock\n");
  add_run(command, environment, chosen);
  add_switch_controller(command, environment, chosen);
  add_install(command, environment, chosen);
  add_status(command, environment, chosen);
  add_switch_resources(command, environment, chosen);
  add_switch_entries(command, environment, chosen);
}

}  // namespace espalier::tools
