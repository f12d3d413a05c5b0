// SPDX-License-Identifier: Apache-2.0
// espalier scan: the items of a range, in key order.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cmdline/number_option.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/item_output.hpp"
#include "tools/json_record.hpp"
#include "tools/key_range.hpp"

namespace espalier::tools {
namespace {

struct ScanCommandOptions {
  SourceOptions source;
  std::string low;
  std::string high;
  std::optional<std::string> prefix;
  std::optional<Encoding> encoding;
  std::uint64_t limit = 0;  // 0: none
  std::uint32_t parts = 0;
  bool has_low = false;
  bool reverse = false;
  bool floor = false;
  bool keys_only = false;
  bool count = false;
  bool json = false;
};

Outcome<KeyRange> range_of(const ScanCommandOptions& options) {
  if (options.prefix && options.has_low) {
    return misused("--prefix and LOW cannot be given together", "A prefix is a range by itself.");
  }
  if (options.floor && (options.reverse || !options.has_low)) {
    return misused(options.reverse ? "--floor and --reverse cannot be given together"
                                   : "--floor needs LOW, the key at or below which to begin");
  }
  if (options.prefix) {
    auto prefix = operand_bytes(*options.prefix, options.encoding, "prefix");
    if (!prefix) return std::unexpected(prefix.error());
    return prefix_range(*prefix);
  }
  auto low = operand_bytes(options.low, options.encoding, "LOW");
  if (!low) return std::unexpected(low.error());
  auto high = operand_bytes(options.high, options.encoding, "HIGH");
  if (!high) return std::unexpected(high.error());
  return KeyRange{std::move(*low), std::move(*high)};
}

void append_item(std::string& text, const Item& item, const ScanCommandOptions& options,
                 bool with_value, Encoding encoding) {
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "key", item.key);
    if (with_value) set_bytes(object, "value", item.value);
    object["version"] = item.version;
    text += object.dump();
  } else {
    encode_to(text, item.key, encoding);
    if (with_value) {
      text += '\t';
      encode_to(text, item.value, encoding);
    }
  }
  text += '\n';
}

Outcome<int> run_scan(Environment& environment, const ScanCommandOptions& options) {
  if (auto checked = check_source(environment, options.source); !checked) {
    return std::unexpected(checked.error());
  }
  const auto range = range_of(options);
  if (!range) return std::unexpected(range.error());
  const auto data = open_data(environment, options.source);
  if (!data) return std::unexpected(data.error());

  StreamSink sink(environment.out);
  GatheredText output(sink);
  const bool with_value = data->report.has_values && !options.keys_only;
  const Encoding encoding = output_encoding(environment, options.encoding, Encoding::tsv);
  const auto deliver = [&](std::span<const Item> items) {
    if (options.count) return true;
    for (const Item& item : items) {
      append_item(output.text(), item, options, with_value, encoding);
      if (!output.pass_on()) return false;
    }
    return true;
  };
  const ScanOptions scan_options{options.limit, options.reverse, options.floor, options.parts};
  const auto scanned = data->map.scan(range->low, range->high, deliver, scan_options);
  if (!scanned && scanned.error().code == Code::key_too_long) {
    return misused(fmt::format("a border of the range is longer than a key can be ({} bytes)",
                               data->map.max_key_bytes()));
  }
  if (!scanned) return failed(fmt::format("cannot scan the map: {}", reason(scanned.error())));
  if (options.count) {
    output.text() +=
        options.json ? fmt::format("{{\"items\":{}}}\n", *scanned) : fmt::format("{}\n", *scanned);
  }
  output.finish();
  return kOk;
}

}  // namespace

void add_scan_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<ScanCommandOptions>();
  CLI::App& command = *app.add_subcommand("scan", "Print the items of a key range, in key order");
  CLI::Option* low = command.add_option(
      "LOW", options->low, "First key of the range; empty: from the smallest (default)");
  command.add_option("HIGH", options->high,
                     "Key that ends the range and is not in it; empty: to the largest (default)");
  command.add_option_function<std::string>(
      "-p,--prefix", [options](const std::string& text) { options->prefix = text; },
      "Print the keys that begin with this");
  cmdline::add_number_function<std::uint64_t>(
      command, "-l,--limit", [options](std::uint64_t limit) { options->limit = limit; },
      "Print at most N items (default: all)", {.min = 1});
  cmdline::add_number_function<std::uint32_t>(
      command, "--parts", [options](std::uint32_t parts) { options->parts = parts; },
      "Walk the range in at most N parts at a time (default: 1)",
      {.min = 1, .max = ScanOptions::kPartsMax});
  command.add_flag("-r,--reverse", options->reverse, "Print the range from its end to its begin");
  command.add_flag("--floor", options->floor,
                   "Begin at the largest key that is not above LOW, and include HIGH");
  command.add_flag("-k,--keys-only", options->keys_only, "Print no values");
  command.add_flag("-c,--count", options->count, "Print only the number of items");
  add_json_option(command, options->json);
  add_encoding_option(command, options->encoding);
  add_source_options(command, options->source, false);
  add_access_options(command, options->source.access);
  command.footer(
      "Prints one item per line: key, tab, value. In the output \\t \\n \\r \\\\ stand for these\n"
      "bytes, on a terminal \\xNN for all others that cannot be shown; see --encoding.\n"
      "Examples:\n"
      "  espalier scan --file prices.csv\n"
      "  espalier scan --file prices.csv apple banana\n"
      "  espalier scan --file /usr/share/dict/words --prefix trell --limit 5\n"
      "  espalier scan --file prices.csv --reverse --limit 1      the last item\n"
      "  espalier scan --at unix:/run/espalier/espalier.sock --map words --count\n");
  command.callback([options, low, &environment, &chosen] {
    options->has_low = low->count() > 0;
    chosen =
        reporting(environment, [options, &environment] { return run_scan(environment, *options); });
  });
}

}  // namespace espalier::tools
