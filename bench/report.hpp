// SPDX-License-Identifier: Apache-2.0
// Prints results: JSON lines for programs, or tables for people, whose cells are of these lines.
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

/// One of a table: the value under a key of each line.
struct Column {
  static constexpr int kAsItIs = -1;
  static constexpr int kShort = -2;  // 1.23 M

  std::string title;
  int width;  ///< negative: to the left
  std::string key{};
  int digits = kAsItIs;  ///< behind the point
  double scale = 1;      ///< times which it is printed
  std::string_view unit{};
};

/// Columns that line up as rows come in. Thread: one at a time.
class Table {
 public:
  Table(std::ostream& out, std::vector<Column> columns);
  void row(const std::vector<std::string>& cells);
  /// What the line has under the keys of the columns; "-" where it has nothing.
  void row_of(const Json& line);

 private:
  void print(const std::vector<std::string>& cells);
  std::ostream& out_;
  std::vector<Column> columns_;
  bool titled_ = false;
};

/// To hundredths, and to ten-thousandths.
double rounded(double value);
double rounded_to_four_places(double value);
std::string hex(std::uint64_t value);

/// Prints one line of JSON.
void print_line(std::ostream& out, const Json& line);

/// The probes before and after, for JSON and for people.
Json probes_json(std::optional<double> before_ns, std::optional<double> after_ns);
std::string probes_text(std::optional<double> before_ns, std::optional<double> after_ns);

/// All that a benchmark prints. Thread: one at a time.
class Report {
 public:
  /// `bench`: its name, for JSON.
  Report(std::string_view bench, bool json, const Output& output);

  [[nodiscard]] bool json() const { return json_; }
  [[nodiscard]] const Output& output() const { return output_; }
  [[nodiscard]] std::string_view bench() const { return bench_; }
  /// What goes on until the next line.
  [[nodiscard]] Progress& progress() { return progress_; }

  /// The table of the lines that follow, below a heading if there is one.
  void table(std::vector<Column> columns, const std::string& heading = {});
  /// A measurement.
  void line(const Json& fields);
  /// What measurements say of each other: for people a sentence of the names and numbers that come
  /// behind the key `from`.
  void ratios(const Json& fields, std::string_view from);
  /// What tables do not have, for people.
  void say(const std::string& text);

  /// A run of a benchmark that compares answers: they were equal to those of others, or not.
  void compared(std::uint64_t ops, bool equal);
  /// Some answers differ.
  void differ() { equal_ = false; }
  /// The benchmark fails in the end, and says why.
  void fail(std::string why) { failure_ = std::move(why); }
  /// No target that was asked for can do an experiment: likewise, and says so now.
  void say_nothing_measured(std::string_view experiment);
  /// Says this in place of how many there were.
  void total(Json line, std::string sentence);

  [[nodiscard]] std::uint64_t measured() const { return runs_ + lines_; }
  /// Prints the total. Returns what main should.
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
  std::uint64_t runs_ = 0;   // those that are
  std::uint64_t ops_ = 0;    // of these
  bool equal_ = true;
  bool lacks_experiment_ = false;
  std::string failure_;
};

}  // namespace espalier::bench
