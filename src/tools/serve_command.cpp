// SPDX-License-Identifier: Apache-2.0
// espalier serve: a memory node, configured by flags, variables and a file. This file assembles the
// configuration; tools/node_process.hpp runs the node.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>

#include "cmdline/number_option.hpp"
#include "node/config_file.hpp"
#include "node/config_load.hpp"
#include "node/config_settings.hpp"
#include "tools/commands.hpp"

namespace espalier::tools {
namespace {

struct ServeOptions {
  std::vector<node::FlagValue> flags;
  std::optional<std::uint64_t> accept_loss_from;
  std::string chain;
  std::string chain_members;
  bool check = false;
  bool print = false;
};

/// Reads no more than is needed to reject an overlong file: a file may have no end. Does not wait
/// for a writer of a FIFO, which would stop the node during a reload.
Result<std::string> read_config(Files& files, const std::string& path) {
  const auto info = files.info(path);
  if (info && info->is_fifo) return fail(Code::unsupported);
  auto source = files.open(path);
  if (!source && source.error() == Error{Code::system, 0, ENOENT}) return fail(Code::not_found);
  if (!source) return std::unexpected(source.error());
  std::string text(node::kFileBytesMax + 1, '\0');
  std::size_t used = 0;
  while (used < text.size()) {
    const auto count = (*source)->read(std::span(text).subspan(used));
    if (!count) return std::unexpected(count.error());
    if (*count == 0) break;
    used += *count;
  }
  text.resize(used);
  return text;
}

/// What an option takes, for its line of the help.
std::string type_of(const node::Rule& rule) {
  switch (rule.kind) {
    case node::Kind::path: return "PATH";
    case node::Kind::fabric: return "ADDRESSES";
    case node::Kind::host_port: return "HOST[:PORT]";
    case node::Kind::name: return "NAME";
    case node::Kind::count: return "N";
    case node::Kind::toggle: return "true|false";
    case node::Kind::bytes: return "SIZE";
    case node::Kind::memory: return "SIZE|PERCENT";
    case node::Kind::level: return "trace|debug|info|warn|error";
    case node::Kind::place: return "host|device";
    case node::Kind::on_log_error: return "serve|exit";
    case node::Kind::durability: return "none|async|sync";
    case node::Kind::mode: return "MODE";
  }
  std::unreachable();
}

std::string section_of(std::string_view key) { return std::string(key.substr(0, key.find('.'))); }

/// The value is not checked here: the table of settings validates it, and reports all mistakes
/// together, whatever their source.
void add_setting(CLI::App& command, const node::Setting& setting,
                 const std::shared_ptr<ServeOptions>& options) {
  std::string group = "Settings: " + section_of(setting.key);
  std::string what(setting.what);
  if (what.ends_with('.')) what.pop_back();
  // What makes a node a device has short names, too.
  const bool named_twice = setting.key == "node.place" || setting.key == "node.host" ||
                           setting.key == "node.secret_file";
  std::string short_name = named_twice ? "," + node::flag_name(setting.key.substr(5)) : "";
  if (setting.key == "data.dir") short_name = ",--data";
  if (setting.key == "data.on_log_error") short_name = ",--on-log-error";
  if (setting.key == "data.durability") short_name = ",--durability";
  command
      .add_option_function<std::string>(
          node::flag_name(setting.key) + short_name,
          [options, key = std::string(setting.key)](const std::string& text) {
            options->flags.push_back({key, text});
          },
          fmt::format("{} (default: {})", what, setting.fallback))
      ->type_name(type_of(setting.rule))
      ->group(std::move(group));
}

void add_config_options(CLI::App& command, const std::shared_ptr<ServeOptions>& options) {
  const auto take = [options](std::string_view key) {
    return [options, key](const std::string& text) {
      options->flags.push_back({std::string(key), text});
    };
  };
  command
      .add_option_function<std::string>(node::flag_name(node::kFileKey), take(node::kFileKey),
                                        "File to read the configuration from (default: "
                                        "ESPALIER_CONFIG, else /etc/espalier/espalier.toml)")
      ->type_name("PATH");
  const auto take_maps = [take](const std::vector<std::string>& names) {
    for (const std::string& name : names) take(node::kMapKey)(name);
  };
  command
      .add_option_function<std::vector<std::string>>(
          node::flag_name(node::kMapKey), take_maps,
          "Map to make, once for each (default: those of the file, else one called default)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  const auto take_peers = [take](const std::vector<std::string>& peers) {
    for (const std::string& peer : peers) take(node::kPeerKey)(peer);
  };
  command
      .add_option_function<std::vector<std::string>>(
          node::flag_name(node::kPeerKey), take_peers,
          "Other node that offloads of this one may use, once for each, and behind a space the "
          "file with the name and secret by which to come there (default: [peers] of the file)")
      ->type_name("NAME=ADDRESS")
      ->allow_extra_args(false);
  CLI::Option* const check = command.add_flag(
      "--check-config", options->check, "Tell what is wrong with the configuration, and exit");
  command
      .add_flag("--print-config", options->print,
                "Print the configuration with the origin of each value, and exit")
      ->excludes(check);
  for (const node::Setting& setting : node::settings()) add_setting(command, setting, options);
  // No setting: where it stayed in a file, it would accept the next loss, too.
  cmdline::add_number_function<std::uint64_t>(
      command, "--accept-loss-from",
      [options](std::uint64_t sequence) { options->accept_loss_from = sequence; },
      "Lose what a damaged data folder has from this sequence on, for good, and start; refused "
      "where nothing is damaged");
  CLI::Option* const chain =
      command
          .add_option("--chain", options->chain,
                      "Be the member of this name of a chain of nodes (espalier chain create)")
          ->type_name("NAME");
  command
      .add_option("--chain-members", options->chain_members,
                  "Where the chain is kept: a file, or etcd://HOST:PORT,.../KEY")
      ->type_name("PLACE")
      ->needs(chain);
}

Outcome<int> serve_node(Environment& environment, const ServeOptions& options) {
  const node::World world{
      .environment = environment.variables,
      .read_file = [&](const std::string& path) { return read_config(environment.files, path); },
      .user_id = environment.user_id,
      .memory_bytes = environment.machine_bytes,
  };
  const auto load = [&] { return node::load(world, options.flags); };
  auto loaded = load();
  if (!loaded) {
    for (const node::Problem& problem : loaded.error()) {
      print_note(environment, "error", node::describe(problem));
    }
    return kUsage;
  }
  if (options.check) {
    environment.out << "the configuration is good\n";
    return kOk;
  }
  if (options.print) {
    environment.out << node::print(*loaded);
    return kOk;
  }
  if (options.accept_loss_from) {
    if (loaded->config.data.dir.empty()) {
      return misused("--accept-loss-from is of a data folder, and none is given",
                     "Name it: --data DIR.");
    }
    loaded->config.data.accept_loss_from = options.accept_loss_from;
  }
  if (!options.chain.empty()) {
    if (options.chain_members.empty()) {
      return misused("--chain says which member of a chain it is, and not where that is kept",
                     "Name the place: --chain-members PLACE.");
    }
    if (loaded->config.data.dir.empty()) {
      return misused("a member of a chain keeps its records in a data folder, and none is given",
                     "Name it: --data DIR.");
    }
    if (options.accept_loss_from) {
      return misused("a member of a chain that has lost records is none any more",
                     "Leave it out: espalier chain remove. The other members have the records.");
    }
    loaded->config.chain = {options.chain, options.chain_members};
  }
  return environment.serve(environment, *loaded, load);
}

}  // namespace

void add_serve_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App& command =
      *app.add_subcommand("serve", "Run a memory node, which serves maps to clients");
  add_config_options(command, options);
  command.footer(
      "Every setting can also come from a variable (--node-cores is ESPALIER_NODE_CORES) or from\n"
      "the file; flags come first. The node runs until SIGTERM or SIGINT; a second one ends it at\n"
      "once. SIGHUP makes it read the file again and take what a running node can change: "
      "log.level,\n"
      "metrics.port, node.socket_mode and times; the log tells what, and what takes a restart.\n"
      "Exits with 2 if the configuration is wrong.\n"
      "Examples:\n"
      "  espalier serve\n"
      "  espalier serve --node-socket /tmp/node.sock --memory-limit 2GiB --map words --map prices\n"
      "  espalier serve --config ./node.toml --check-config\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return serve_node(environment, *options); });
  });
}

}  // namespace espalier::tools
