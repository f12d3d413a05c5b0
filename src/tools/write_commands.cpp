// SPDX-License-Identifier: Apache-2.0
// espalier put, espalier erase: change a map of a node; or one that is filled from a file, and
// write it back to that file.
//
// The file is written anew from the map: in key order, one record per key. So whatever a map cannot
// hold would be lost, and a command that would lose something refuses: bad lines, further columns,
// values in a file of lines. Comments and the order of lines are not kept; a header line is.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <variant>

#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/numbers.hpp"
#include "tools/save.hpp"

namespace espalier::tools {
namespace {

struct WriteOptions {
  SourceOptions source;
  std::vector<std::string> operands;  // put: key and value; erase: keys
  std::optional<Encoding> encoding;
  bool create = false;
  bool dry_run = false;
  bool drop_bad_lines = false;
  bool json = false;
  std::vector<const CLI::Option*> of_files;  // have no meaning for a map on a node
};

/// What a command did to its map.
struct Change {
  std::uint64_t inserted = 0;
  std::uint64_t replaced = 0;
  std::uint64_t erased = 0;
  std::vector<std::string> missing;  // keys to erase that were not there
};

using Apply =
    std::function<Outcome<Change>(std::variant<Map, HashMap>, const std::vector<std::string>&)>;

template <class AMap>
Failure write_failure(const AMap& map, const std::string& key, const Error& error) {
  if (error.code == Code::key_too_long) {
    return {kUsage,
            fmt::format("the key has {} bytes; a key has 1 to {}", key.size(), key_bytes_max(map)),
            ""};
  }
  return {kFailed, fmt::format("cannot change the map: {}", reason(error)), ""};
}

template <class AMap>
Outcome<Change> put_into(AMap& map, const std::vector<std::string>& operands) {
  const auto written = map.put(operands[0], operands[1]);
  if (!written) return std::unexpected(write_failure(map, operands[0], written.error()));
  Change change;
  ++(written->existed ? change.replaced : change.inserted);
  return change;
}

template <class AMap>
Outcome<Change> erase_from(AMap& map, const std::vector<std::string>& keys) {
  Change change;
  for (const std::string& key : keys) {
    const auto written = map.erase(key);
    if (!written) return std::unexpected(write_failure(map, key, written.error()));
    if (written->applied) {
      ++change.erased;
    } else {
      change.missing.push_back(key);
    }
  }
  return change;
}

Outcome<Change> apply_put(std::variant<Map, HashMap> to, const std::vector<std::string>& operands) {
  return std::visit([&](auto& map) { return put_into(map, operands); }, to);
}
Outcome<Change> apply_erase(std::variant<Map, HashMap> to, const std::vector<std::string>& keys) {
  return std::visit([&](auto& map) { return erase_from(map, keys); }, to);
}

/// Refuses files that a map cannot hold whole.
Outcome<void> check_nothing_lost(const WriteOptions& options, const LoadReport& report,
                                 const std::string& file) {
  const auto keep_column = options.source.reader.value_column;
  const bool tabular = report.format == Format::csv || report.format == Format::tsv;
  const bool first_two = options.source.reader.key_column == 1 && keep_column.value_or(2) == 2;
  if (report.bad_lines > 0 && !options.drop_bad_lines) {
    return failed(fmt::format("'{}' has {} bad line{}, which writing it back would lose", file,
                              format_count(report.bad_lines), report.bad_lines == 1 ? "" : "s"),
                  "Mend them, or give --drop-bad-lines.");
  }
  if (tabular && report.columns > 0 && (report.columns != 2 || !first_two)) {
    return failed(
        fmt::format("'{}' has {} columns; only files of two, key and value, can be "
                    "written back without loss",
                    file, report.columns));
  }
  if (options.source.reader.number_lines) {
    return misused("--number-lines only reads: the numbers stand nowhere in the file");
  }
  return {};
}

/// The format in which to write `file` back: the one it was read in. A new or empty file has none
/// but by its name or by --format.
Format format_to_write(const WriteOptions& options, const LoadReport& report,
                       const std::string& file) {
  if (report.columns > 0) return report.format;
  return reader_options_for(options.source, file).format.value_or(Format::tsv);
}

/// Refuses contents that would not be read back as they are.
Outcome<void> check_fits(const WriteOptions& options, const Map& map,
                         const SaveOptions& save_options, const std::string& file) {
  if (options.source.reader.header && save_options.header.empty()) {
    return failed(fmt::format("'{}' has no header line", file), "Leave --header out.");
  }
  if (!reader_options_for(options.source, file).format) {
    if (auto checked = check_recognisable(map, save_options); !checked) return checked;
  }
  if (save_options.format != Format::lines) return {};
  const auto payload = measure(map);
  if (!payload) return std::unexpected(payload.error());
  if (payload->value_bytes == 0) return {};
  return failed("a file of lines holds keys only, no values",
                "Give an empty value (\"\"), or use a .csv or .tsv file.");
}

void print_change(Environment& environment, const WriteOptions& options, const Change& change,
                  std::uint64_t items, const std::string& file = "") {
  // Into a pipe goes the new content of the file; the report goes beside it.
  std::ostream& stream = file == "-" && !options.dry_run ? environment.err : environment.out;
  if (options.json) {
    nlohmann::ordered_json object;
    object["inserted"] = change.inserted;
    object["replaced"] = change.replaced;
    object["erased"] = change.erased;
    object["missing"] = change.missing.size();
    object["items"] = items;
    object["written"] = !options.dry_run;
    stream << object.dump() << '\n';
    return;
  }
  const std::string_view what = change.inserted > 0   ? "inserted"
                                : change.replaced > 0 ? "replaced"
                                                      : "erased";
  stream << fmt::format("{}{} {}, {} item{} in all\n", options.dry_run ? "would have " : "", what,
                        change.inserted + change.replaced + change.erased, format_count(items),
                        items == 1 ? "" : "s");
}

/// Loads the file, or begins an empty map for one that is to be created.
Outcome<Dataset> load_for_change(Environment& environment, const WriteOptions& options,
                                 const std::string& file, const FileInfo& before) {
  SourceOptions source = options.source;
  if (file != "-" && !before.exists) {
    if (!options.create) {
      return failed(fmt::format("there is no file '{}'", file), "To begin one, give --create.");
    }
    source.files.clear();
  }
  return load_clean(environment, source);
}

void report_missing(Environment& environment, const Change& change) {
  for (const std::string& key : change.missing) {
    print_note(environment, "not found", encode(key, Encoding::escaped));
  }
}

/// Changes a map where it lies. Each write is there when the command ends; nothing is saved.
Outcome<int> change_node(Environment& environment, const WriteOptions& options,
                         const std::vector<std::string>& operands, const Apply& apply) {
  for (const CLI::Option* option : options.of_files) {
    if (option->count() == 0) continue;
    return misused(fmt::format("{} is for files, and the map is on a node", option->get_name()),
                   "Leave it out, or give --file.");
  }
  auto data = open_any_data(environment, options.source);
  if (!data) return std::unexpected(data.error());
  const auto change = apply(data->map, operands);
  if (!change) return std::unexpected(change.error());
  report_missing(environment, *change);
  const auto items = std::visit(
      [](const auto& map) -> Outcome<std::uint64_t> {
        const auto stats = stats_of(map);
        if (!stats) return std::unexpected(stats.error());
        return stats->items;
      },
      data->map);
  if (!items) return std::unexpected(items.error());
  print_change(environment, options, *change, *items);
  return change->missing.empty() ? kOk : kFailed;
}

Outcome<int> change_file(Environment& environment, const WriteOptions& options,
                         const std::vector<std::string>& operands, const Apply& apply) {
  if (options.source.files.size() != 1) return misused("only one file can be written back");
  const std::string& file = options.source.files[0];
  auto before = file == "-" ? Result<FileInfo>(FileInfo{}) : environment.files.info(file);
  if (!before) return failed(fmt::format("cannot read '{}': {}", file, reason(before.error())));
  auto data = load_for_change(environment, options, file, *before);
  if (!data) return std::unexpected(data.error());
  if (auto safe = check_nothing_lost(options, data->report, file); !safe) {
    return std::unexpected(safe.error());
  }
  const auto change = apply(data->map, operands);
  if (!change) return std::unexpected(change.error());
  report_missing(environment, *change);
  const SaveOptions save_options{format_to_write(options, data->report, file),
                                 options.source.reader.separator, data->report.header};
  if (auto fits = check_fits(options, data->map, save_options, file); !fits) {
    return std::unexpected(fits.error());
  }
  const bool changed = change->inserted + change->replaced + change->erased > 0;
  if (!options.dry_run && (changed || file == "-")) {
    const auto saved = save_if_unchanged(environment, data->map, file, save_options, before->stamp);
    if (!saved) return std::unexpected(saved.error());
  }
  const auto stats = stats_of(data->map);
  if (!stats) return std::unexpected(stats.error());
  print_change(environment, options, *change, stats->items, file);
  return change->missing.empty() ? kOk : kFailed;
}

Outcome<int> change_map(Environment& environment, const WriteOptions& options, const Apply& apply) {
  if (auto checked = check_source(environment, options.source); !checked) {
    return std::unexpected(checked.error());
  }
  std::vector<std::string> operands;
  for (const std::string& operand : options.operands) {
    auto bytes = operand_bytes(operand, options.encoding, "operand");
    if (!bytes) return std::unexpected(bytes.error());
    operands.push_back(std::move(*bytes));
  }
  return data_address(environment, options.source)
             ? change_node(environment, options, operands, apply)
             : change_file(environment, options, operands, apply);
}

void add_change_options(CLI::App& command, const std::shared_ptr<WriteOptions>& options,
                        Environment& environment, Action& chosen, Apply apply) {
  options->of_files.push_back(
      command.add_flag("--dry-run", options->dry_run, "Say what would be done, and write nothing"));
  options->of_files.push_back(command.add_flag("--drop-bad-lines", options->drop_bad_lines,
                                               "Write the file back without its bad lines"));
  add_json_option(command, options->json);
  add_encoding_option(command, options->encoding);
  add_source_options(command, options->source, false);
  command.callback([options, &environment, &chosen, apply = std::move(apply)] {
    chosen = reporting(environment, [options, &environment, apply] {
      return change_map(environment, *options, apply);
    });
  });
}

}  // namespace

void add_put_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<WriteOptions>();
  CLI::App& command =
      *app.add_subcommand("put", "Insert or replace an item, in a file or on a node");
  // Two options, not one of two values: each takes any byte string, brackets included.
  for (const std::string operand : {"KEY", "VALUE"}) {
    command
        .add_option_function<std::string>(
            operand, [options](const std::string& text) { options->operands.push_back(text); },
            operand == "KEY" ? "Key of the item" : "Its new value; may be empty")
        ->required();
  }
  options->of_files.push_back(
      command.add_flag("--create", options->create, "Begin a new file if there is none"));
  command.footer(
      "A file is written anew, sorted, one record per key, and replaced all at once; it keeps its\n"
      "permissions. With --file - the result goes to standard output.\n"
      "Examples:\n"
      "  espalier put --file prices.csv apple 1.20\n"
      "  espalier put --file new.tsv --create apple 1.20\n"
      "  espalier put --file prices.csv --dry-run apple 1.20\n"
      "  espalier put --at unix:/run/espalier/espalier.sock apple 1.20\n");
  add_change_options(command, options, environment, chosen, apply_put);
}

void add_erase_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<WriteOptions>();
  CLI::App& command = *app.add_subcommand("erase", "Remove items, from a file or on a node");
  command.add_option("KEY", options->operands, "Keys to remove")->required();
  command.footer(
      "Exits with 1 if a key is not there; the others are removed all the same.\n"
      "A file is written anew, sorted, one record per key, and replaced all at once.\n"
      "Examples:\n"
      "  espalier erase --file prices.csv apple pear\n"
      "  espalier erase --file - apple < prices.csv > fewer.csv\n"
      "  espalier erase --at unix:/run/espalier/espalier.sock apple\n");
  add_change_options(command, options, environment, chosen, apply_erase);
}

}  // namespace espalier::tools
