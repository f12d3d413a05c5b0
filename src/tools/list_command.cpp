// SPDX-License-Identifier: Apache-2.0
// espalier list: all that a node keeps, with its kind.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "channel/objects.hpp"
#include "client/store_impl.hpp"
#include "kinds/table/client/tables.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"
#include "tools/shown_samples.hpp"

namespace espalier::tools {
namespace {

struct ListOptions {
  std::optional<std::string> at;
  bool json = false;
};

void print_listed(Environment& environment, const ListOptions& options,
                  const channel::ListedObject& object) {
  const std::string kind = shown_kind(object.kind, name(object.kind));
  if (options.json) {
    nlohmann::ordered_json json;
    json["kind"] = kind;
    set_bytes(json, "name", object.name);
    json["id"] = object.id;
    json["entries"] = object.numbers.entries;
    json["memory_bytes"] = object.numbers.memory_bytes;
    if (object.durability) json["durability"] = name(*object.durability);
    environment.out << json.dump() << '\n';
    return;
  }
  environment.out << fmt::format("{:<9} {}\n", kind, encode(object.name, Encoding::escaped));
}

Outcome<int> list_objects(Environment& environment, const ListOptions& options) {
  const auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  auto store = connect(environment, *address);
  if (!store) return std::unexpected(store.error());
  auto objects = channel::list(*client::StoreImpl::of(*store).channel());
  if (!objects) return call_failed("list what the node keeps", objects.error());
  std::ranges::sort(*objects, {}, [](const channel::ListedObject& object) {
    return std::pair(object.kind, std::string_view(object.name));
  });
  for (const channel::ListedObject& object : *objects) print_listed(environment, options, object);
  return kOk;
}

}  // namespace

void add_list_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<ListOptions>();
  CLI::App& command = *app.add_subcommand("list", "Print all that a node keeps, with its kind");
  add_json_option(command, options->json);
  add_address_option(command, options->at);
  command.footer("Example:\n  espalier list --at unix:/run/espalier/espalier.sock\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return list_objects(environment, *options); });
  });
}

}  // namespace espalier::tools
