// SPDX-License-Identifier: Apache-2.0
// espalier region create, read, write, list, drop: the regions of a node.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "espalier/region.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"

namespace espalier::tools {
namespace {

struct RegionOptions {
  std::optional<std::string> at;
  std::string name;
  std::string value;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> wanted;
  bool json = false;
};

/// A node, and what is asked of it.
struct RegionPlace {
  std::string address;
  Store store;
};

using RegionWork = Outcome<int> (*)(Environment&, const RegionOptions&, RegionPlace&);

std::string quoted_region(const std::string& name) {
  return fmt::format("region '{}'", cmdline::escaped(name));
}

Outcome<RegionPlace> reach_node(const Environment& environment, const RegionOptions& options) {
  auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  if (*address == "embedded") {
    return misused(fmt::format("'{}' is no node, and regions are on nodes", *address),
                   "Start one: espalier serve --node-socket PATH.");
  }
  auto store = connect(environment, *address, Access::rpc);
  if (!store) return std::unexpected(store.error());
  return RegionPlace{std::move(*address), std::move(*store)};
}

std::unexpected<Failure> fail_region(const RegionPlace& place, const std::string& what,
                                     const RegionOptions& options, const Error& error) {
  if (error.code == Code::not_found) {
    return failed(
        fmt::format("the node at {} has no {}", place.address, quoted_region(options.name)),
        "espalier region list shows those that it has; espalier region create makes one.");
  }
  if (error.code == Code::wrong_kind) return other_kind(place.address, options.name, error);
  if (error == Error{Code::invalid_argument, 0, Region::kBeyond}) {
    return failed(fmt::format("not all of these bytes are within {}", quoted_region(options.name)),
                  "espalier region list --json shows how many it has.");
  }
  return call_failed(fmt::format("{} {}", what, quoted_region(options.name)), error);
}

Outcome<Region> open_named(const RegionPlace& place, const RegionOptions& options) {
  auto opened = place.store.open_region(options.name);
  if (!opened) return fail_region(place, "open", options, opened.error());
  return std::move(*opened);
}

void print_region_json(std::ostream& out, const std::string& name, std::uint64_t bytes) {
  nlohmann::ordered_json object;
  set_bytes(object, "region", name);
  object["bytes"] = bytes;
  out << object.dump() << '\n';
}

Outcome<int> create_named(Environment& environment, const RegionOptions& options,
                          RegionPlace& place) {
  const auto made = place.store.create_region(options.name, options.bytes);
  if (!made && made.error().code == Code::already_exists) {
    return name_taken(place.address, options.name, made.error());
  }
  if (!made) return fail_region(place, "make", options, made.error());
  if (options.json) {
    print_region_json(environment.out, options.name, made->bytes());
  } else {
    environment.out << fmt::format("made {}, of {} bytes\n", quoted_region(options.name),
                                   made->bytes());
  }
  return kOk;
}

Outcome<int> read_named(Environment& environment, const RegionOptions& options,
                        RegionPlace& place) {
  const auto opened = open_named(place, options);
  if (!opened) return std::unexpected(opened.error());
  const std::uint64_t all = opened->bytes();
  const std::uint64_t rest = all - std::min(all, options.offset);
  // What is beyond is refused before memory is asked for it.
  const std::uint64_t wanted = options.wanted.value_or(rest);
  if (options.offset > all || wanted > rest) {
    return fail_region(place, "read", options, {Code::invalid_argument, 0, Region::kBeyond});
  }
  std::string bytes(wanted, '\0');
  const auto read = opened->read(options.offset, std::as_writable_bytes(std::span(bytes)));
  if (!read) return fail_region(place, "read", options, read.error());
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "region", options.name);
    object["offset"] = options.offset;
    set_bytes(object, "value", bytes);
    environment.out << object.dump() << '\n';
  } else {
    environment.out << bytes;
  }
  return kOk;
}

Outcome<int> write_named(Environment& environment, const RegionOptions& options,
                         RegionPlace& place) {
  auto opened = open_named(place, options);
  if (!opened) return std::unexpected(opened.error());
  const auto written = opened->write(options.offset, std::as_bytes(std::span(options.value)));
  if (!written) return fail_region(place, "write", options, written.error());
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "region", options.name);
    object["offset"] = options.offset;
    object["bytes"] = options.value.size();
    environment.out << object.dump() << '\n';
  }
  return kOk;
}

Outcome<int> list_regions(Environment& environment, const RegionOptions& options,
                          RegionPlace& place) {
  const auto all = place.store.regions();
  if (!all) return call_failed("list the regions", all.error());
  for (const RegionDescription& each : *all) {
    if (options.json) {
      print_region_json(environment.out, each.name, each.bytes);
    } else {
      environment.out << cmdline::escaped(each.name) << '\n';
    }
  }
  return kOk;
}

Outcome<int> drop_named(Environment& environment, const RegionOptions& options,
                        RegionPlace& place) {
  const auto dropped = place.store.drop_region(options.name);
  if (!dropped) return fail_region(place, "drop", options, dropped.error());
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "region", options.name);
    object["dropped"] = true;
    environment.out << object.dump() << '\n';
  } else {
    environment.out << fmt::format("dropped {}\n", quoted_region(options.name));
  }
  return kOk;
}

/// Adds a command, with what all of them have.
CLI::App& add_work(CLI::App& parent, const std::shared_ptr<RegionOptions>& options,
                   Environment& environment, Action& chosen, const std::string& name,
                   const std::string& description, RegionWork work) {
  CLI::App& command = *parent.add_subcommand(name, description);
  if (work != list_regions) {
    command.add_option("NAME", options->name, "Name of the region")->required();
  }
  add_json_option(command, options->json);
  add_address_option(command, options->at);
  command.callback([options, &environment, &chosen, work] {
    chosen = reporting(environment, [options, &environment, work]() -> Outcome<int> {
      auto place = reach_node(environment, *options);
      if (!place) return std::unexpected(place.error());
      return work(environment, *options, *place);
    });
  });
  return command;
}

}  // namespace

void add_region_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<RegionOptions>();
  CLI::App& command =
      *app.add_subcommand("region", "Regions on a node: bytes that nodes and peers write");
  command.require_subcommand(1);
  command.footer(
      "Examples:\n"
      "  export ESPALIER_AT=unix:/run/espalier/espalier.sock\n"
      "  espalier region create flags 4096\n"
      "  espalier region write flags on --offset 16\n"
      "  espalier region read flags --offset 16 --bytes 2\n");
  const auto add = [&](const std::string& name, const std::string& what,
                       RegionWork work) -> CLI::App& {
    return add_work(command, options, environment, chosen, name, what, work);
  };
  add("create", "Make a region of zeros", create_named)
      .add_option("BYTES", options->bytes, "How many bytes it has")
      ->required();
  CLI::App& reading = add("read", "Print bytes of a region as they are", read_named);
  CLI::App& writing = add("write", "Write bytes to a region", write_named);
  writing.add_option("VALUE", options->value, "The bytes")->required();
  for (CLI::App* const placed : {&reading, &writing}) {
    placed->add_option("--offset", options->offset, "Where they begin (0)")->option_text("NUMBER");
  }
  reading.add_option("--bytes", options->wanted, "How many (all from there on)")
      ->option_text("NUMBER");
  add("list", "Print the names of all regions", list_regions);
  add("drop", "Remove a region: nobody writes to it any more", drop_named);
}

}  // namespace espalier::tools
