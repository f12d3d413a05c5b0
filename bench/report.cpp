// SPDX-License-Identifier: Apache-2.0
#include "bench/report.hpp"

#include <fmt/core.h>
#include <fmt/ostream.h>

#include <cmath>
#include <ostream>

namespace espalier::bench {
namespace {

Json optional_number(const std::optional<double>& value) {
  return value ? Json(std::round(*value * 10) / 10) : Json(nullptr);
}

std::string number_text(double value, int digits) {
  if (digits == Column::kShort) return value > 0 ? short_number(value) : "-";
  if (digits == Column::kAsItIs) return fmt::format("{}", value);
  return fmt::format("{:.{}f}", value, digits);
}

std::string cell_text(const Json& value, const Column& column) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) {  // such as {"before": 1, "after": 2}
    std::string text;
    for (const auto& each : value) text += (text.empty() ? "" : " / ") + cell_text(each, column);
    return text;
  }
  if (!value.is_number() || (column.digits == Column::kAsItIs && column.scale == 1)) {
    return value.dump() + std::string(column.unit);
  }
  return number_text(value.get<double>() * column.scale, column.digits) + std::string(column.unit);
}

}  // namespace

Table::Table(std::ostream& out, std::vector<Column> columns)
    : out_(out), columns_(std::move(columns)) {}

void Table::row(const std::vector<std::string>& cells) {
  if (!std::exchange(titled_, true)) {
    std::vector<std::string> titles;
    for (const Column& column : columns_) titles.push_back(column.title);
    print(titles);
  }
  print(cells);
}

void Table::row_of(const Json& line) {
  std::vector<std::string> cells;
  for (const Column& column : columns_) {
    cells.push_back(line.contains(column.key) ? cell_text(line.at(column.key), column) : "-");
  }
  row(cells);
}

void Table::print(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < columns_.size() && i < cells.size(); ++i) {
    const int width = columns_[i].width;
    if (i > 0) line += "  ";
    line += width < 0 ? fmt::format("{:<{}}", cells[i], -width)
                      : fmt::format("{:>{}}", cells[i], width);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out_ << line << std::endl;  // flushes for people
}

double rounded(double value) { return std::round(value * 100) / 100; }
double rounded_to_four_places(double value) { return std::round(value * 1e4) / 1e4; }
std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

void print_line(std::ostream& out, const Json& line) {
  out << line.dump() << std::endl;  // flushes, so that each result appears immediately
}

Json probes_json(std::optional<double> before_ns, std::optional<double> after_ns) {
  return {{"before", optional_number(before_ns)}, {"after", optional_number(after_ns)}};
}

std::string probes_text(std::optional<double> before_ns, std::optional<double> after_ns) {
  return cell_text(probes_json(before_ns, after_ns), {"", 0, "", 0});
}

Report::Report(std::string_view bench, bool json, const Output& output)
    : bench_(bench), json_(json), output_(output), progress_(output_) {}

void Report::table(std::vector<Column> columns, const std::string& heading) {
  if (!heading.empty()) say(heading);
  table_.emplace(output_.out, std::move(columns));
}

void Report::line(const Json& fields) {
  progress_.clear();
  ++lines_;
  if (!json_ && table_) return table_->row_of(fields);
  if (!json_) return;
  Json line;
  line["bench"] = bench_;
  line.update(fields);
  print_line(output_.out, line);
}

void Report::ratios(const Json& fields, std::string_view from) {
  if (json_) {
    --lines_;
    return line(fields);
  }
  std::string text = "  " + fields.value("target", std::string()) + ":";
  bool begun = false;
  for (const auto& [key, value] : fields.items()) {
    begun = begun || key == from;
    if (begun) text += fmt::format(" {} {}", key, cell_text(value, {"", 0, "", 3}));
  }
  say(text);
}

void Report::say(const std::string& text) {
  progress_.clear();
  if (!json_) fmt::print(output_.out, "{}\n", text);
}

void Report::compared(std::uint64_t ops, bool equal) {
  ++runs_;
  ops_ += ops;
  equal_ = equal_ && equal;
}

void Report::say_nothing_measured(std::string_view experiment) {
  progress_.clear();
  lacks_experiment_ = true;
  fmt::print(output_.err,
             "espalier-bench: experiment '{}': no target that was asked for can do it: leave "
             "--target away, or see --help\n",
             experiment);
}

void Report::total(Json line, std::string sentence) {
  total_.emplace(std::move(line), std::move(sentence));
}

void Report::print_total() {
  const bool compares = runs_ != 0 || lines_ == 0;
  if (!total_) {
    Json line;
    line["total"] = true;
    if (compares) {
      line["runs"] = runs_;
      line["ops"] = ops_;
      line["result_hashes_equal"] = equal_;
    } else {
      line["measurements"] = lines_;
    }
    std::string sentence = fmt::format("total: {} measurements", lines_);
    if (compares) {
      sentence = fmt::format("total: {} runs, {} operations{}", runs_,
                             short_number(static_cast<double>(ops_)),
                             equal_ ? "; all answers equal" : "; THE ANSWERS DIFFER");
    }
    total(std::move(line), std::move(sentence));
  }
  if (!json_) return say(total_->second);
  Json line;
  line["bench"] = bench_;
  line.update(total_->first);
  print_line(output_.out, line);
}

int Report::finish() {
  progress_.clear();
  print_total();
  if (!equal_) {
    fmt::print(output_.err,
               "espalier-bench: the targets did not answer alike, so one of them is wrong: compare "
               "result_hash and end_hash of the lines\n");
  }
  if (!failure_.empty()) fmt::print(output_.err, "espalier-bench: {}\n", failure_);
  return equal_ && failure_.empty() && !lacks_experiment_ && measured() != 0 ? 0 : 1;
}

}  // namespace espalier::bench
