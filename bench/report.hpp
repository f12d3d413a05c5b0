// SPDX-License-Identifier: Apache-2.0
// Prints results: JSON lines for programs, or tables for people, with cells from these lines.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/output.hpp"
#include "bench/progress.hpp"
#include "cmdline/short_number.hpp"

namespace espalier::bench {

using Json = nlohmann::ordered_json;
using cmdline::short_number;

/// A column of a table: the value under a key of each line.
struct Column {
  static constexpr int kAsItIs = -1;
  static constexpr int kShort = -2;  // 1.23 M

  std::string title;
  int width;  ///< negative: to the left
  std::string key{};
  int digits = kAsItIs;  ///< after the point
  double scale = 1;      ///< factor
  std::string_view unit{};
};

/// Columns that line up as rows come in. Thread: one at a time.
class Table {
 public:
  Table(std::ostream& out, std::vector<Column> columns);
  void row(const std::vector<std::string>& cells);
  /// Prints the values of the columns' keys; "-" if there is none.
  void row_of(const Json& line);

 private:
  void print(const std::vector<std::string>& cells);
  std::ostream& out_;
  std::vector<Column> columns_;
  bool titled_ = false;
};

/// Rounded to hundredths, and to ten-thousandths.
double rounded(double value);
double rounded_to_four_places(double value);
std::string hex(std::uint64_t value);

/// Prints one line of JSON.
void print_line(std::ostream& out, const Json& line);

/// The probes before and after, for JSON and for people.
Json probes_json(std::optional<double> before_ns, std::optional<double> after_ns);
std::string probes_text(std::optional<double> before_ns, std::optional<double> after_ns);

/// All output of a benchmark. Thread: one at a time.
class Report {
 public:
  /// `bench`: its name, for JSON.
  Report(std::string_view bench, bool json, const Output& output);

  [[nodiscard]] bool json() const { return json_; }
  [[nodiscard]] const Output& output() const { return output_; }
  [[nodiscard]] std::string_view bench() const { return bench_; }
  /// Progress until the next line.
  [[nodiscard]] Progress& progress() { return progress_; }

  /// The table of the lines that follow, below a heading if there is one.
  void table(std::vector<Column> columns, const std::string& heading = {});
  /// A measurement.
  void line(const Json& fields);
  /// Ratios between measurements: for people a sentence of the names and numbers after the key
  /// `from`.
  void ratios(const Json& fields, std::string_view from);
  /// A sentence for people.
  void say(const std::string& text);

  /// A run of a benchmark that compares answers, and whether they were equal to the others'.
  void compared(std::uint64_t ops, bool equal);
  /// Some answers differ.
  void differ() { equal_ = false; }
  /// Makes the benchmark fail in the end, with this reason.
  void fail(std::string why) { failure_ = std::move(why); }
  /// No selected target can run an experiment: likewise, and reports it now.
  void say_nothing_measured(std::string_view experiment);
  /// Replaces the sentence of the total.
  void total(Json line, std::string sentence);

  [[nodiscard]] std::uint64_t measured() const { return runs_ + lines_; }
  /// Prints the total. Returns main's exit code.
  [[nodiscard]] int finish();

 private:
  void print_total();

  std::string bench_;
  const bool json_;
  const Output output_;
  Progress progress_;
  std::optional<Table> table_;
  std::optional<std::pair<Json, std::string>> total_;
  std::uint64_t lines_ = 0;  // measurements that are not compared
  std::uint64_t runs_ = 0;   // those that are compared
  std::uint64_t ops_ = 0;    // of these
  bool equal_ = true;
  bool lacks_experiment_ = false;
  std::string failure_;
};

}  // namespace espalier::bench
