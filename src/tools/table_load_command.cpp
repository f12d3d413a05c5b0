// SPDX-License-Identifier: Apache-2.0
// espalier table load: rows from CSV into a table of a node, all of an append or none.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "kinds/table/client/tables.hpp"
#include "kinds/table/csv_reader.hpp"
#include "kinds/table/ctr_cipher.hpp"
#include "tools/commands.hpp"
#include "tools/json_record.hpp"
#include "tools/numbers.hpp"
#include "tools/progress.hpp"
#include "tools/table_key.hpp"
#include "tools/table_options.hpp"
#include "tools/table_place.hpp"

namespace espalier::tools {
namespace {

/// Rows that one append carries: large enough to be quick, small enough for any node.
constexpr std::size_t kAppendBytes = std::size_t{1} << 20;

struct TableLoadOptions {
  std::optional<std::string> at;
  std::string name;
  std::string file;
  CsvFlags csv;
  KeyFlags key;
  bool json = false;
};

struct Loaded {
  std::uint64_t rows = 0;
  std::uint64_t skipped = 0;
  double seconds = 0;
};

std::unexpected<Failure> bad_csv(const std::string& file, const table::CsvFailure& failure,
                                 std::uint64_t rows) {
  const std::string why =
      failure.error.code == Code::system ? reason(failure.error) : table::describe(failure.where);
  return failed(fmt::format("{}: {}", file, why),
                fmt::format("{} rows were loaded before. --skip-bad N leaves out bad lines.",
                            format_count(rows)));
}

/// Bytes that there are to read, where that is known.
std::optional<std::uint64_t> size_of(Environment& environment, const std::string& file) {
  if (file == kStandardInput) return std::nullopt;
  const auto info = environment.files.info(file);
  return info ? info->size_bytes : std::nullopt;
}

Outcome<Loaded> load_rows(Environment& environment, const std::string& file, ByteSource& source,
                          const table::CsvOptions& csv, client::TableImpl& table) {
  auto cipher = table.cipher();
  if (!cipher) return refused("encrypt the rows", cipher.error());
  const std::uint64_t begin_ns = environment.now_ns();
  Progress progress(environment, file == kStandardInput ? "standard input" : file,
                    size_of(environment, file));
  table::CsvReader reader(source, table.schema(), csv);
  const std::size_t row_bytes = table.schema().row_bytes();
  std::vector<std::byte> rows(std::max<std::size_t>(kAppendBytes / row_bytes, 1) * row_bytes);
  Loaded loaded;
  for (;;) {
    const auto read = reader.read(rows);
    if (!read) return bad_csv(file, read.error(), loaded.rows);
    if (*read == 0) break;
    const std::span<std::byte> part = std::span(rows).first(*read * row_bytes);
    const auto appended = table.append_with(*cipher, part);
    if (!appended) {
      return refused(fmt::format("append to table '{}' behind {} rows of this file", table.name(),
                                 format_count(loaded.rows)),
                     appended.error());
    }
    loaded.rows += *read;
    progress.update_piece(reader.consumed_bytes(), loaded.rows);
  }
  progress.wipe();
  loaded.skipped = reader.skipped();
  for (const table::CsvError& skipped : reader.first_skipped()) {
    print_note(environment, "warning", file + ": " + table::describe(skipped));
  }
  if (const std::uint64_t more = loaded.skipped - reader.first_skipped().size(); more != 0) {
    print_note(environment, "warning",
               fmt::format("{}: {} more bad {} left out", file, format_count(more),
                           more == 1 ? "line was" : "lines were"));
  }
  loaded.seconds = static_cast<double>(environment.now_ns() - begin_ns) * 1e-9;
  return loaded;
}

void report_rows(Environment& environment, const TableLoadOptions& options, const Loaded& loaded) {
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "table", options.name);
    object["rows"] = loaded.rows;
    object["skipped_lines"] = loaded.skipped;
    object["seconds"] = loaded.seconds;
    environment.out << object.dump() << '\n';
    return;
  }
  environment.out << fmt::format(
      "loaded {} rows into table '{}' in {}{}\n", format_count(loaded.rows), options.name,
      format_duration(loaded.seconds),
      loaded.skipped == 0 ? ""
                          : fmt::format(", {} bad lines left out", format_count(loaded.skipped)));
}

Outcome<int> load(Environment& environment, const TableLoadOptions& options) {
  const auto csv = csv_options(options.csv);
  if (!csv) return std::unexpected(csv.error());
  auto place = open_tables(environment, options.at);
  if (!place) return std::unexpected(place.error());
  const auto opened_table = open_table(*place, options.name);
  if (!opened_table) return std::unexpected(opened_table.error());
  client::TableImpl& table = *client::TableImpl::of(*opened_table);
  if (auto used = use_key(options.key, table); !used) return std::unexpected(used.error());
  std::unique_ptr<ByteSource> opened;
  if (options.file != kStandardInput) {
    auto file = environment.files.open(options.file);
    if (!file) {
      return failed(fmt::format("cannot read {}: {}", options.file, reason(file.error())));
    }
    opened = std::move(*file);
  }
  ByteSource& source = opened ? *opened : environment.input;
  const auto loaded = load_rows(environment, options.file, source, *csv, table);
  if (!loaded) return std::unexpected(loaded.error());
  report_rows(environment, options, *loaded);
  return kOk;
}

}  // namespace

void add_table_load(CLI::App& table, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<TableLoadOptions>();
  CLI::App& command = *table.add_subcommand("load", "Append the rows of a CSV file to a table");
  command.add_option("NAME", options->name, "Name of the table")->required();
  command.add_option("FILE", options->file, "CSV file; - reads standard input")->required();
  add_csv_flags(command, options->csv, CsvUse::reading);
  add_key_flags(command, options->key, false);
  add_json_option(command, options->json);
  add_address_option(command, options->at);
  command.footer(
      "Columns are found by the names in the first line, unless --no-header is given.\n"
      "Example:\n"
      "  espalier table load elements elements.csv --skip-bad 10\n");
  command.callback([options, &environment, &chosen] {
    chosen =
        reporting(environment, [options, &environment] { return load(environment, *options); });
  });
}

}  // namespace espalier::tools
