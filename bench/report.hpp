// SPDX-License-Identifier: Apache-2.0
// Prints results: JSON lines for programs, or a table for people.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/output.hpp"
#include "bench/runner.hpp"
#include "bench/ycsb_options.hpp"
#include "cmdline/short_number.hpp"

namespace espalier::bench {

using Json = nlohmann::ordered_json;

/// One line of JSON with the keys of docs/experiments.md, which keep their meaning over releases.
Json to_json(std::string_view bench, const RunResult& result, const YcsbOptions& options,
             const RequestPlan& plan, const KeySet& keys);

/// Columns that line up as rows come in. Thread: one at a time.
class Table {
 public:
  struct Column {
    std::string title;
    int width;  ///< negative: to the left
  };
  Table(std::ostream& out, std::vector<Column> columns);
  void row(const std::vector<std::string>& cells);

 private:
  void print(const std::vector<std::string>& cells);
  std::ostream& out_;
  std::vector<Column> columns_;
  bool titled_ = false;
};

using cmdline::short_number;

/// To hundredths.
double rounded(double value);

/// Prints one line of JSON.
void print_line(std::ostream& out, const Json& line);

/// The last line of a benchmark that compares nothing: how many measurements there were.
void print_measurements(std::ostream& out, std::string_view bench, std::uint64_t count, bool json);

/// Says on standard error why the benchmark fails although it ran to its end.
void say_answers_differ(const Output& output);
/// Likewise: no target that was asked for can do an experiment.
void say_nothing_measured(const Output& output, std::string_view experiment);

struct RunTotal {
  std::uint64_t runs = 0;
  std::uint64_t ops = 0;
  bool equal = true;  ///< the answers of all targets
};
/// The last line of a benchmark that compares answers. Returns what main should: 1 if they differ,
/// or if there was no run.
[[nodiscard]] int print_total(const Output& output, std::string_view bench, const RunTotal& total,
                              bool json);

/// The probes before and after, for JSON and for people.
Json probes_json(std::optional<double> before_ns, std::optional<double> after_ns);
std::string probes_text(std::optional<double> before_ns, std::optional<double> after_ns);

/// Table columns and cells of a run.
std::vector<Table::Column> run_columns();
std::vector<std::string> run_cells(const RunResult& result);

}  // namespace espalier::bench
