// SPDX-License-Identifier: Apache-2.0
// espalier table create, list, describe, drop: which tables a node has.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/store_impl.hpp"
#include "cmdline/text_codec.hpp"
#include "kinds/table/client/schema.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/schema.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"
#include "tools/numbers.hpp"
#include "tools/table_place.hpp"

namespace espalier::tools {
namespace {

struct TableCommandOptions {
  std::optional<std::string> at;
  std::string name;
  std::string schema;
  bool encrypted = false;
  std::optional<Durability> durability;
  bool json = false;
};

using TableWork = Outcome<int> (*)(Environment&, const TableCommandOptions&, TablePlace&);

void print_table_json(std::ostream& out, const TableDescription& table) {
  nlohmann::ordered_json object;
  set_bytes(object, "table", table.name);
  object["rows"] = table.rows;
  object["row_bytes"] = table.schema.row_bytes();
  object["pages"] = table.pages;
  object["memory_bytes"] = table.memory_bytes;
  object["encrypted"] = table.encrypted;
  if (table.durability) object["durability"] = name(*table.durability);
  object["schema"] = table.schema.to_text();
  out << object.dump() << '\n';
}

Outcome<int> create_table(Environment& environment, const TableCommandOptions& options,
                          TablePlace& place) {
  const auto schema = Schema::parse(options.schema);
  if (!schema) {
    return misused(message(schema.error()),
                   "For example: 'id i64 not null, name text(20), price decimal(12,2)'.");
  }
  const std::string& name = options.name;
  const auto made = client::StoreImpl::of(place.store)
                        .tables()
                        ->create(name, client::SchemaImpl::of(*schema).schema,
                                 {options.encrypted, options.durability});
  if (!made && made.error().error.code == Code::already_exists) {
    return name_taken(place.address, name, made.error().error);
  }
  if (!made) return refused(fmt::format("make table '{}'", cmdline::escaped(name)), made.error());
  if (options.json) {
    const auto table = client::TableImpl::handle(*made).describe();
    if (!table)
      return refused(fmt::format("read table '{}'", cmdline::escaped(name)), table.error());
    print_table_json(environment.out, *table);
  } else {
    environment.out << fmt::format("made {}table '{}', rows of {} bytes\n",
                                   options.encrypted ? "encrypted " : "", cmdline::escaped(name),
                                   schema->row_bytes());
  }
  return kOk;
}

Outcome<int> list_tables(Environment& environment, const TableCommandOptions& options,
                         TablePlace& place) {
  const auto tables = place.store.tables();
  if (!tables) return refused("list the tables", tables.error());
  for (const TableDescription& table : *tables) {
    if (options.json) {
      print_table_json(environment.out, table);
    } else {
      environment.out << cmdline::escaped(table.name) << '\n';
    }
  }
  return kOk;
}

Outcome<int> describe_table(Environment& environment, const TableCommandOptions& options,
                            TablePlace& place) {
  const auto opened = open_table(place, options.name);
  if (!opened) return std::unexpected(opened.error());
  const auto table = opened->describe();
  if (!table)
    return refused(fmt::format("read table '{}'", cmdline::escaped(options.name)), table.error());
  if (options.json) {
    print_table_json(environment.out, *table);
    return kOk;
  }
  std::ostream& out = environment.out;
  out << fmt::format("table   {}\n", cmdline::escaped(table->name));
  out << fmt::format("rows    {} of {} bytes\n", format_count(table->rows),
                     table->schema.row_bytes());
  out << fmt::format("memory  {} in {} pages\n", format_bytes(table->memory_bytes),
                     format_count(table->pages));
  if (table->encrypted) out << "cipher  AES-128-CTR\n";
  for (const Column& column : table->schema.columns()) {
    out << fmt::format("column  {} {}{}\n", table::quoted_name(column.name), column.type.to_text(),
                       column.nullable ? "" : " not null");
  }
  return kOk;
}

Outcome<int> drop_table(Environment& environment, const TableCommandOptions& options,
                        TablePlace& place) {
  const std::string& name = options.name;
  const auto dropped = place.store.drop_table(name);
  if (!dropped && dropped.error().error.code == Code::not_found) {
    return failed(
        fmt::format("the node at {} has no table '{}'", place.address, cmdline::escaped(name)),
        "espalier table list shows those that it has.");
  }
  if (!dropped && dropped.error().error.code == Code::wrong_kind) {
    return other_kind(place.address, name, dropped.error().error);
  }
  if (!dropped)
    return refused(fmt::format("drop table '{}'", cmdline::escaped(name)), dropped.error());
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "table", name);
    object["dropped"] = true;
    environment.out << object.dump() << '\n';
  } else {
    environment.out << fmt::format("dropped table '{}'\n", cmdline::escaped(name));
  }
  return kOk;
}

CLI::App& add_table_work(CLI::App& parent, const std::string& name, const std::string& description,
                         const std::shared_ptr<TableCommandOptions>& options,
                         Environment& environment, Action& chosen, TableWork work) {
  CLI::App& command = *parent.add_subcommand(name, description);
  if (work != list_tables)
    command.add_option("NAME", options->name, "Name of the table")->required();
  add_json_option(command, options->json);
  add_address_option(command, options->at);
  command.callback([options, &environment, &chosen, work] {
    chosen = reporting(environment, [options, &environment, work]() -> Outcome<int> {
      auto place = open_tables(environment, options->at);
      if (!place) return std::unexpected(place.error());
      return work(environment, *options, *place);
    });
  });
  return command;
}

}  // namespace

void add_table_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<TableCommandOptions>();
  CLI::App& command =
      *app.add_subcommand("table", "Relational tables on a node, and queries that run there");
  command.require_subcommand(1);
  command.footer(
      "Examples:\n"
      "  export ESPALIER_AT=unix:/run/espalier/espalier.sock\n"
      "  espalier table create elements 'number i32 not null, symbol char(2), name text(20)'\n"
      "  espalier table load elements elements.csv\n"
      "  espalier table query 'select name from elements where number > 100 limit 3'\n");
  CLI::App& making = add_table_work(command, "create", "Make an empty table", options, environment,
                                    chosen, create_table);
  making.add_option("SCHEMA", options->schema, "Its columns: 'name type [not null], ...'")
      ->required();
  add_durability_option(making, options->durability);
  making.add_flag("--encrypted", options->encrypted,
                  "Its rows are encrypted before they are sent; load and query take a key");
  add_table_load(command, environment, chosen);
  add_table_work(command, "list", "Print the names of all tables", options, environment, chosen,
                 list_tables);
  add_table_work(command, "describe", "Print a table's columns and size", options, environment,
                 chosen, describe_table);
  add_table_query(command, environment, chosen);
  add_table_export(command, environment, chosen);
  add_table_work(command, "drop", "Remove a table and all that is in it", options, environment,
                 chosen, drop_table);
}

}  // namespace espalier::tools
