// SPDX-License-Identifier: Apache-2.0
// espalier switch resources, entries: what tables take in switches of hardware, and their entries
// for the P4 program.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "cmdline/number_option.hpp"
#include "dataplane/p4_entries.hpp"
#include "dataplane/resource_report.hpp"
#include "tools/commands.hpp"
#include "tools/switch_reach.hpp"

namespace espalier::tools {
namespace {

using dataplane::ResourceReport;
using dataplane::SwitchMap;

struct ResourcesOptions {
  TablesFrom from;
  dataplane::SwitchTarget target;
  bool json = false;
};

nlohmann::ordered_json in_json(const SwitchMap& map, const ResourceReport& report) {
  nlohmann::ordered_json line{{"map", fmt::format("{:x}", map.keys.keyed)},
                              {"target", report.target},
                              {"switches", report.switches},
                              {"row", report.sets_of_switch},
                              {"sram_blocks", report.sram_blocks},
                              {"tcam_blocks", report.tcam_blocks},
                              {"tables", nlohmann::ordered_json::array()}};
  for (const dataplane::TableUse& table : report.tables) {
    line["tables"].push_back({{"name", table.name},
                              {"switch", table.switch_number + 1},
                              {"stage", table.stage + 1},
                              {"entries", table.entries},
                              {"key_bits", table.key_bits},
                              {"action_bits", table.action_bits},
                              {"sram_blocks", table.sram_blocks},
                              {"tcam_blocks", table.tcam_blocks}});
  }
  return line;
}

Outcome<int> report_switch_tables(Environment& environment, const ResourcesOptions& options) {
  const auto program = program_from(environment, options.from);
  if (!program) return std::unexpected(program.error());
  if (program->maps().empty()) return failed("there are no tables, of no map");
  for (const SwitchMap& map : program->maps()) {
    const auto made = report_resources(map.tables, options.target);
    if (!made) {
      return failed(fmt::format("the tables of the map with the key {:x} do not fit: {}",
                                map.keys.keyed, made.error()));
    }
    if (options.json) {
      environment.out << in_json(map, *made).dump() << '\n';
    } else {
      environment.out << fmt::format("map {:x}: {}", map.keys.keyed, to_text(*made));
    }
  }
  return kOk;
}

struct EntriesOptions {
  TablesFrom from;
  bool follows = false;
  std::uint32_t every_ms = 200;
};

Outcome<std::string> entries_from(Environment& environment, const TablesFrom& from) {
  const auto program = program_from(environment, from);
  if (!program) return std::unexpected(program.error());
  auto entries = dataplane::p4_entries(*program);
  if (!entries) {
    return failed("the P4 program has no room for these tables: " + entries.error(),
                  "Compile smaller ones: espalier switch controller --ranges, --sets, --nodes.");
  }
  return *std::move(entries);
}

/// How often the tables of a switch have changed.
Outcome<std::string> generation_of(const std::string& control) {
  auto client = reach_switch(control);
  if (!client) return std::unexpected(client.error());
  const auto status = client->ask("status");
  if (!status) return did_not(*client, control);
  std::istringstream lines(*status);
  std::string name;
  for (std::string value; lines >> name >> value;) {
    if (name == "generation") return value;
  }
  return failed("the switch does not say how often its tables have changed");
}

// Whether they are others is asked before they are: what changes in between comes with the next
// look.
Outcome<int> follow_entries(Environment& environment, const EntriesOptions& options) {
  const auto stop = environment.notice_stop();
  if (stop == nullptr) return failed("nobody could stop it", "Leave out --follow.");
  std::string printed;
  std::string generation;
  do {
    auto now = generation_of(options.from.control);
    if (!now) return std::unexpected(now.error());
    if (*now == generation) continue;
    auto entries = entries_from(environment, options.from);
    if (!entries) return std::unexpected(entries.error());
    environment.out << (generation.empty() ? *entries : dataplane::p4_changes(printed, *entries));
    environment.out.flush();
    printed = *std::move(entries);
    generation = *std::move(now);
  } while (stop->wait(options.every_ms * std::uint64_t{1'000'000}).empty());
  return kOk;
}

Outcome<int> print_entries(Environment& environment, const EntriesOptions& options) {
  if (options.follows) return follow_entries(environment, options);
  const auto entries = entries_from(environment, options.from);
  if (!entries) return std::unexpected(entries.error());
  environment.out << *entries;
  return kOk;
}

}  // namespace

void add_switch_resources(CLI::App& above, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<ResourcesOptions>();
  CLI::App& command =
      *above.add_subcommand("resources", "Show what tables take in switches of hardware");
  add_tables_from(command, options->from);
  cmdline::add_number(command, "--switches", options->target.switches,
                      "Switches in a row on the path", {1, 16});
  cmdline::add_number(command, "--stages", options->target.stages, "Stages of each switch",
                      {1, 64});
  cmdline::add_number(command, "--sram-blocks", options->target.sram_blocks,
                      "Blocks of SRAM in each stage", {0, 10'000});
  cmdline::add_number(command, "--tcam-blocks", options->target.tcam_blocks,
                      "Blocks of TCAM in each stage", {0, 10'000});
  add_json_option(command, options->json);
  command.footer(
      "A model of a pipeline of match-action stages, by default with what is public of Tofino:\n"
      "blocks of 1024 words of 128 bits of SRAM, and of 512 words of 44 bits of TCAM. Exits with "
      "1\n"
      "if the tables of a map do not fit, and says why. The compiler of such a switch has the "
      "last\n"
      "word. One line of JSON for each map.\n"
      "Examples:\n"
      "  espalier switch resources tables.txt\n"
      "  espalier switch resources --control /tmp/s.sock --switches 1\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment, [options, &environment] {
      return report_switch_tables(environment, *options);
    });
  });
}

void add_switch_entries(CLI::App& above, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<EntriesOptions>();
  CLI::App& command =
      *above.add_subcommand("entries", "Print tables as entries for dataplane/p4/index.p4");
  add_tables_from(command, options->from);
  command
      .add_flag("--follow", options->follows,
                "Go on, and print what changes, until SIGTERM or SIGINT")
      ->needs("--control");
  cmdline::add_number(command, "--every", options->every_ms,
                      "With --follow: milliseconds between two looks", {1, 60'000});
  command.footer(
      "Lines for simple_switch_CLI, the runtime CLI of bmv2. A map's keys come last, so its READs\n"
      "pass until all that they lead to is there. docs/design/index_in_network.md says how to\n"
      "compile and run the program. With --follow the switch at PATH is one of user space, which "
      "a\n"
      "controller fills, and the P4 switch has had no other entries before: an entry is changed "
      "by\n"
      "its handle, which is how many were added before it. Where other numbers are matched all\n"
      "tables are cleared and added anew.\n"
      "Examples:\n"
      "  espalier switch entries --control /tmp/s.sock > entries.txt\n"
      "  espalier switch entries --control /tmp/s.sock --follow | simple_switch_CLI\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return print_entries(environment, *options); });
  });
}

}  // namespace espalier::tools
