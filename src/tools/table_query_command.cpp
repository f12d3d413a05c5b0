// SPDX-License-Identifier: Apache-2.0
// espalier table query, export: rows of a table, worked out beside the memory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "kinds/table/client/tables.hpp"
#include "kinds/table/csv_writer.hpp"
#include "kinds/table/explain.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "sql/query.hpp"
#include "tools/commands.hpp"
#include "tools/numbers.hpp"
#include "tools/table_answer.hpp"
#include "tools/table_key.hpp"
#include "tools/table_options.hpp"
#include "tools/table_place.hpp"
#include "tools/table_pull.hpp"

namespace espalier::tools {
namespace {

struct QueryOptions {
  std::optional<std::string> at;
  KeyFlags key;
  bool encrypt_result = false;
  std::string query;
  std::string format = "text";
  bool explain = false;
  bool pull = false;
  Access access = Access::rpc;  ///< by which rows are pulled
  bool quiet = false;
};

std::unexpected<Failure> wrong_query(const sql::SqlError& error) {
  return misused("the query is refused " + error.message(),
                 "docs/tables.md has what a query may be.");
}

/// What ran where, for --explain and the last line.
struct Traffic {
  wire::QueryNumbers numbers{};
  std::uint64_t bytes_received = 0;
  std::uint64_t buffer_bytes = 0;  // of these, written into this process's memory
  std::uint64_t rows = 0;
  double seconds = 0;
};

std::string summary(const Traffic& traffic, bool pulled) {
  return fmt::format(
      "{} {} in {}; {} {} read {}, {} sent\n", format_count(traffic.rows),
      traffic.rows == 1 ? "row" : "rows", format_nanoseconds(traffic.seconds * 1e9),
      format_count(traffic.numbers.rows_read), traffic.numbers.rows_read == 1 ? "row" : "rows",
      pulled ? "across the connection"
             : fmt::format("beside the memory ({})", format_bytes(traffic.numbers.bytes_read)),
      format_bytes(traffic.bytes_received));
}

TableResult<void> run_beside(client::TableImpl& table, const sql::Query& query,
                             const client::UserKeys& keys, const client::TableImpl::RowSink& sink,
                             Traffic& traffic) {
  client::RunLimits limits;
  limits.within_call = true;
  limits.keys = keys;
  const auto run = table.begin(query.message, query.pipeline.result.row_bytes(), limits);
  if (!run) return std::unexpected(run.error());
  std::vector<std::byte> copy;
  for (bool more = true; more;) {
    const auto rows = (*run)->next();
    if (!rows) return std::unexpected(rows.error());
    copy.assign(rows->begin(), rows->end());  // they may change
    more = !copy.empty() && sink(copy);
  }
  (*run)->end();
  traffic.numbers = (*run)->numbers();
  traffic.buffer_bytes = (*run)->buffer_bytes();
  return {};
}

/// What stood beside the memory, and how the rows came.
std::string explain_run(const sql::Query& query, const Traffic& traffic, bool pulled) {
  const wire::QueryNumbers& numbers = traffic.numbers;
  std::string text =
      fmt::format("memory: {} of registers and groups", format_bytes(numbers.memory_bytes));
  if (numbers.flushes != 0) {
    text += fmt::format("; groups were sent {} times as parts, and merged here", numbers.flushes);
  }
  text += "\nstate:";
  const table::BatchProgram program(query.pipeline);
  std::string_view between = " ";
  for (const auto& state : table::operator_states(program, numbers.memory_bytes)) {
    text += fmt::format("{}{} {}", between, state.name, format_bytes(state.bytes));
    between = ", ";
  }
  text += '\n';
  if (pulled) return text;
  return text + fmt::format("rows: {} in buffers, {} in messages\n",
                            format_bytes(traffic.buffer_bytes),
                            format_bytes(traffic.bytes_received - traffic.buffer_bytes));
}

Outcome<Traffic> run_query(Environment& environment, const QueryOptions& options,
                           client::TableImpl& table, const sql::Query& query,
                           const client::UserKeys& keys, AnswerWriter& writer) {
  const std::uint64_t begin_ns = environment.now_ns();
  Traffic traffic;
  sql::Answer answer(query, begin_ns);
  sql::Answer::Taken taken;
  const sql::Answer::Take print = [&](sql::Answer::Row row) { writer.row(row); };
  const client::TableImpl::RowSink sink = [&](std::span<const std::byte> rows) {
    if (!options.pull) traffic.bytes_received += rows.size();
    if (taken) taken = answer.take(rows, print);
    return taken.has_value() && !answer.is_full();
  };
  if (options.pull) {
    auto pulled = pull_and_run(table, query.pipeline, sink);
    if (!pulled) return std::unexpected(pulled.error());
    traffic.numbers = pulled->numbers;
    traffic.bytes_received = pulled->bytes_received;
  } else {
    const auto ran = run_beside(table, query, keys, sink, traffic);
    if (!ran) return refused(fmt::format("query table '{}'", table.name()), ran.error());
  }
  if (taken) taken = answer.finish(print);
  if (!taken) return failed("the answer cannot be worked out: " + taken.error());
  traffic.rows = answer.rows();
  traffic.seconds = static_cast<double>(environment.now_ns() - begin_ns) * 1e-9;
  return traffic;
}

struct QueryKeys {
  std::optional<TableKey> result;  // while the run has it
  client::UserKeys run;
};

/// The keys that the run takes along. What is pulled is decrypted here, and takes none.
Outcome<QueryKeys> keys_of(const QueryOptions& options, const TablePlace& place,
                           client::TableImpl& table) {
  if (options.pull && options.encrypt_result) {
    return misused("with --pull there is no result to encrypt: nothing runs beside the memory");
  }
  if (options.pull) {
    if (auto used = use_key(options.key, table); !used) return std::unexpected(used.error());
    return QueryKeys{};
  }
  auto result = use_query_keys(options.key, options.encrypt_result, place, table);
  if (!result) return std::unexpected(result.error());
  const auto run = table.keys_of_run(*result ? &**result : nullptr);
  if (!run) return misused(message(run.error()));
  return QueryKeys{*std::move(result), *run};
}

Outcome<int> query(Environment& environment, const QueryOptions& options) {
  const auto format = answer_format(options.format);
  if (!format) return misused("--format is text, csv or json, not '" + options.format + "'");
  if (options.access != Access::rpc && !options.pull) {
    return misused("--one-sided says how rows are pulled, and a query runs beside the memory",
                   "Give --pull too.");
  }
  const auto statement = sql::parse(options.query);
  if (!statement) return wrong_query(statement.error());
  auto place = open_tables(environment, options.at, options.access);
  if (!place) return std::unexpected(place.error());
  const auto opened = open_table(*place, statement->table);
  if (!opened) return std::unexpected(opened.error());
  client::TableImpl& table = *client::TableImpl::of(*opened);
  const auto keys = keys_of(options, *place, table);
  if (!keys) return std::unexpected(keys.error());
  const auto translated =
      sql::translate(*statement, table.schema(),
                     {.table = keys->run.table != nullptr, .result = options.encrypt_result});
  if (!translated) return wrong_query(translated.error());
  if (options.explain) {
    for (const std::string& line : table::explain(table::BatchProgram(translated->pipeline))) {
      environment.err << line << '\n';
    }
  }
  AnswerWriter writer(environment.out, *translated, *format);
  const auto traffic = run_query(environment, options, table, *translated, keys->run, writer);
  if (!traffic) return std::unexpected(traffic.error());
  writer.finish();
  environment.out.flush();
  if (options.explain) environment.err << explain_run(*translated, *traffic, options.pull);
  if (!options.quiet) environment.err << summary(*traffic, options.pull);
  return kOk;
}

struct ExportOptions {
  std::optional<std::string> at;
  KeyFlags key;
  std::string name;
  Access access = Access::rpc;
  CsvFlags csv;
};

Outcome<int> export_rows(Environment& environment, const ExportOptions& options) {
  const auto csv = csv_options(options.csv);
  if (!csv) return std::unexpected(csv.error());
  auto place = open_tables(environment, options.at, options.access);
  if (!place) return std::unexpected(place.error());
  const auto opened = open_table(*place, options.name);
  if (!opened) return std::unexpected(opened.error());
  client::TableImpl& table = *client::TableImpl::of(*opened);
  if (auto used = use_key(options.key, table); !used) return std::unexpected(used.error());
  const std::string what = fmt::format("export table '{}'", table.name());
  client::RunLimits limits;
  limits.within_call = true;
  const auto read = table.read({}, limits);
  if (!read) return refused(what, read.error());
  table::CsvWriter writer(table.schema(), *csv);
  std::string text;
  writer.append_header(text);
  const std::size_t row_bytes = table.schema().row_bytes();
  do {
    const auto rows = (*read)->next();
    if (!rows) return refused(what, rows.error());
    for (auto left = *rows; !left.empty(); left = left.subspan(row_bytes)) {
      writer.append_row(text, left.data());
    }
    environment.out << text;
    text.clear();
    if (rows->empty()) break;
  } while (environment.out.good());
  environment.out.flush();
  if (!environment.out.good()) return failed("cannot write what was read");
  return kOk;
}

}  // namespace

void add_table_query(CLI::App& table, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<QueryOptions>();
  CLI::App& command = *table.add_subcommand("query", "Run a query beside the memory");
  command
      .add_option("QUERY", options->query,
                  "select [distinct] item, ... from t [where e] [group by c, ...] [limit n]")
      ->required();
  command.add_option("--format", options->format, "text (default), csv or json");
  command.add_flag("--explain", options->explain, "Show what runs beside the memory");
  command.add_flag("--pull", options->pull,
                   "Read the whole table across the connection, and work it out here");
  add_one_sided_flag(command, options->access);
  command.add_flag("--quiet", options->quiet, "Do not tell what was read and sent");
  command.add_flag("--encrypt-result", options->encrypt_result,
                   "The rows of the result travel encrypted, with the key of --key-file");
  add_key_flags(command, options->key, true);
  add_address_option(command, options->at);
  command.footer(
      "Examples:\n"
      "  espalier table query 'select count(*) from elements'\n"
      "  espalier table query --explain 'select phase, avg(mass) as mean from elements\n"
      "    where number < 90 group by phase'\n");
  command.callback([options, &environment, &chosen] {
    chosen =
        reporting(environment, [options, &environment] { return query(environment, *options); });
  });
}

void add_table_export(CLI::App& table, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App& command = *table.add_subcommand("export", "Print all rows of a table as CSV");
  command.add_option("NAME", options->name, "Name of the table")->required();
  add_csv_flags(command, options->csv, CsvUse::writing);
  add_one_sided_flag(command, options->access);
  add_key_flags(command, options->key, false);
  add_address_option(command, options->at);
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return export_rows(environment, *options); });
  });
}

}  // namespace espalier::tools
