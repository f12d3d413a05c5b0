// SPDX-License-Identifier: Apache-2.0
// espalier get: the values of keys, or of the nearest keys below.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <variant>

#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"

namespace espalier::tools {
namespace {

struct GetOptions {
  SourceOptions source;
  std::vector<std::string> keys;
  std::optional<Encoding> encoding;
  bool floor = false;
  bool json = false;
  bool no_newline = false;
};

Result<std::optional<FoundItem>> floor_of(const Map& map, const std::string& key) {
  return map.floor(key);
}
Result<std::optional<FoundItem>> floor_of(const HashMap&, const std::string&) {
  return fail(Code::unsupported);
}

/// What was found for one key that was asked for.
template <class AMap>
Outcome<std::optional<FoundItem>> look_up(const AMap& map, const std::string& key, bool floor) {
  auto found = [&]() -> Result<std::optional<FoundItem>> {
    if (floor) return floor_of(map, key);
    auto value = map.get(key);
    if (!value) return std::unexpected(value.error());
    if (!*value) return std::nullopt;
    return FoundItem{key, std::move((*value)->value), (*value)->version};
  }();
  // No key of such a length can be in the map; asking for it is no error of the map's.
  if (!found && found.error().code == Code::key_too_long) {
    return misused(
        fmt::format("the key has {} bytes; a key has 1 to {}", key.size(), key_bytes_max(map)));
  }
  if (!found && floor && found.error().code == Code::unsupported) {
    return failed(fmt::format("'{}' is a hash map, whose keys have no order: it has no floor",
                              encode(map.name(), Encoding::escaped)),
                  "Leave out --floor, or take an ordered map.");
  }
  if (!found) return failed(fmt::format("cannot read the map: {}", reason(found.error())));
  return std::move(*found);
}

void print_found_json(Environment& environment, const std::string& key,
                      const std::optional<FoundItem>& item, bool floor) {
  nlohmann::ordered_json object;
  set_bytes(object, floor ? "asked" : "key", key);
  object["found"] = item.has_value();
  if (item) {
    if (floor) set_bytes(object, "key", item->key);
    set_bytes(object, "value", item->value);
    object["version"] = item->version;
  }
  environment.out << object.dump() << '\n';
}

/// One key prints its value alone, so that $(espalier get ...) is the value; several keys, and keys
/// that were not typed, print themselves as well.
void print_found_text(Environment& environment, const GetOptions& options, const FoundItem& item) {
  const bool with_key = options.keys.size() > 1 || options.floor;
  const Encoding encoding =
      output_encoding(environment, options.encoding, with_key ? Encoding::tsv : Encoding::raw);
  std::string text;
  if (with_key) {
    encode_to(text, item.key, encoding);
    text += '\t';
  }
  encode_to(text, item.value, encoding);
  if (!options.no_newline) text += '\n';
  environment.out << text;
}

Outcome<int> run_get(Environment& environment, const GetOptions& options) {
  if (auto checked = check_source(environment, options.source); !checked) {
    return std::unexpected(checked.error());
  }
  std::vector<std::string> keys;
  for (const std::string& operand : options.keys) {
    auto key = operand_bytes(operand, options.encoding, "key");
    if (!key) return std::unexpected(key.error());
    keys.push_back(std::move(*key));
  }
  const auto data = open_any_data(environment, options.source);
  if (!data) return std::unexpected(data.error());
  int exit_code = kOk;
  for (const std::string& key : keys) {
    const auto item =
        std::visit([&](const auto& map) { return look_up(map, key, options.floor); }, data->map);
    if (!item) return std::unexpected(item.error());
    if (options.json) {
      print_found_json(environment, key, *item, options.floor);
    } else if (*item) {
      print_found_text(environment, options, **item);
    } else {
      print_note(environment, "not found",
                 fmt::format("{}{}", options.floor ? "no key at or below " : "",
                             encode(key, Encoding::escaped)));
    }
    if (!*item) exit_code = kFailed;
  }
  return exit_code;
}

}  // namespace

void add_get_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<GetOptions>();
  CLI::App& command = *app.add_subcommand("get", "Print the values of keys");
  command.add_option("KEY", options->keys, "Keys to look up")->required();
  command.add_flag("--floor", options->floor,
                   "Take the largest key that is not above KEY, and print it as well");
  command.add_flag("-n,--no-newline", options->no_newline, "Print no newline after a value");
  add_json_option(command, options->json);
  add_encoding_option(command, options->encoding);
  add_source_options(command, options->source, false);
  add_access_options(command, options->source.access);
  add_datagram_option(command, options->source.access);
  command.footer(
      "Exits with 1 if a key is not there.\n"
      "Examples:\n"
      "  espalier get --file prices.csv apple\n"
      "  espalier get --file prices.csv --json apple pear\n"
      "  espalier get --file starts.tsv --floor 10.0.0.77\n"
      "  espalier get --at unix:/run/espalier/espalier.sock apple\n"
      "  espalier get --file prices.csv -- -k      a key that begins with -\n");
  command.callback([options, &environment, &chosen] {
    chosen =
        reporting(environment, [options, &environment] { return run_get(environment, *options); });
  });
}

}  // namespace espalier::tools
