// SPDX-License-Identifier: Apache-2.0
// espalier list: all that a node keeps, with its kind.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/impl.hpp"
#include "client/tables.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"
#include "tools/table_place.hpp"

namespace espalier::tools {
namespace {

struct Options {
  std::optional<std::string> at;
  bool json = false;
};

void print(Environment& environment, const Options& options, std::string_view kind,
           const std::string& name) {
  if (options.json) {
    nlohmann::ordered_json object;
    object["kind"] = kind;
    set_bytes(object, "name", name);
    environment.out << object.dump() << '\n';
    return;
  }
  environment.out << fmt::format("{:<7} {}\n", kind, encode(name, Encoding::escaped));
}

Outcome<int> list(Environment& environment, const Options& options) {
  const auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  auto store = connect(environment, *address);
  if (!store) return std::unexpected(store.error());
  auto maps = client::StoreImpl::of(*store).map_names();
  if (!maps) return call_failed("list the maps", maps.error());
  for (const std::string& name : *maps) print(environment, options, "map", name);
  const auto tables = client::StoreImpl::of(*store).tables();
  if (!tables) return kOk;
  const auto listed = tables->list();
  if (!listed) return refused("list the tables", listed.error());
  for (const client::TableInfo& table : *listed) {
    print(environment, options, "table", table.name);
  }
  return kOk;
}

}  // namespace

void add_list_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("list", "Print all that a node keeps, with its kind");
  add_json_option(command, options->json);
  add_address_option(command, options->at);
  command.footer("Example:\n  espalier list --at unix:/run/espalier/espalier.sock\n");
  command.callback([options, &environment, &chosen] {
    chosen =
        reporting(environment, [options, &environment] { return list(environment, *options); });
  });
}

}  // namespace espalier::tools
