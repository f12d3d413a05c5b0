// SPDX-License-Identifier: Apache-2.0
#include "bench/report.hpp"

#include <fmt/core.h>
#include <fmt/ostream.h>

#include <array>
#include <cmath>
#include <ostream>
#include <utility>

namespace espalier::bench {
namespace {

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

Json optional_number(const std::optional<double>& value) {
  return value ? Json(std::round(*value * 10) / 10) : Json(nullptr);
}

// How a target in another place is asked; nothing where an address that was given says it.
std::string_view transport_of(TargetKind kind, const YcsbOptions& options) {
  if (is_ours(kind) && kind != TargetKind::embedded && options.node_address.empty()) {
    return name(options.transport_of(kind));
  }
  if (kind == TargetKind::redis && options.redis_address.empty()) {
    return options.redis_tcp ? "tcp" : "unix";
  }
  return {};
}

void add_parameters(Json& line, const RunResult& result, const YcsbOptions& options,
                    const RequestPlan& plan, const KeySet& keys) {
  line["target"] = name(result.target);
  line["workload"] = name(options.workload);
  line["distribution"] = name(plan.distribution);
  line["key_set"] = name(options.key_source);
  line["keys"] = keys.size();
  line["key_bytes"] = keys.fixed_bytes();
  line["value_bytes"] = options.value_bytes;
  if (options.draw_values) line["values_drawn"] = true;
  if (options.workload == Workload::scan) line["scan_items"] = options.scan_items;
  if (options.workload == Workload::cloud) line["scan_share"] = options.shares.scans;
  if (options.workload == Workload::mixed) line["write_share"] = options.shares.writes;
  line["threads"] = options.threads_of(result.target);
  line["in_flight"] = options.in_flight_of(result.target);
  const std::string_view transport = transport_of(result.target, options);
  if (!transport.empty()) line["transport"] = transport;
  if (is_ours(result.target)) {
    line["versions"] = options.versions;
    line["node_bytes"] = options.node_bytes;
    line["log_bytes"] = options.log_bytes;
    if (result.target == TargetKind::embedded) line["subscribers"] = options.subscribers;
    if (result.target == TargetKind::device) {
      line["cache_bytes"] = options.cache_bytes;
      line["balance"] = options.balance;
      line["slowness"] = options.slowness;
    }
  }
  line["seed"] = options.seed;
  line["repeat"] = result.repeat;
}

}  // namespace

double rounded(double value) { return std::round(value * 100) / 100; }

Json to_json(std::string_view bench, const RunResult& result, const YcsbOptions& options,
             const RequestPlan& plan, const KeySet& keys) {
  Json line;
  line["bench"] = bench;
  add_parameters(line, result, options, plan, keys);
  line["ops"] = result.ops;
  line["seconds"] = result.seconds;
  line["ops_per_s"] = std::round(result.ops_per_s());
  if (result.scanned_items > 0) line["items_per_s"] = std::round(result.items_per_s());
  line["ns_p50"] = result.latencies.percentile(0.5);
  line["ns_p99"] = result.latencies.percentile(0.99);
  line["ns_p999"] = result.latencies.percentile(0.999);
  if (result.feed_news) {
    line["feed_changes"] = result.feed_news->changes;
    line["feed_behind"] = result.feed_news->behind;
  }
  if (result.traffic && result.all_ops != 0) {
    const auto ops = static_cast<double>(result.all_ops);
    line["round_trips_per_op"] = rounded(static_cast<double>(result.traffic->round_trips) / ops);
    line["bytes_per_op"] = rounded(static_cast<double>(result.traffic->bytes) / ops);
    if (result.target == TargetKind::device) {
      line["hit_share"] = result.traffic->hit_share();
      line["forwarded_per_op"] = static_cast<double>(result.traffic->of_device.forwarded) / ops;
    }
  }
  if (result.load_ops_per_s > 0) line["load_ops_per_s"] = std::round(result.load_ops_per_s);
  line["bytes_per_item"] = rounded(result.bytes_per_item);
  line["bytes_left"] = result.bytes_left;
  line["pages"] = result.pages;
  line["settings"] = result.settings;
  line["probe_ns"] = probes_json(result.probe_before_ns, result.probe_after_ns);
  line["complete"] = result.complete;
  line["result_hash"] = hex(result.result_hash);
  line["hash_covers"] = result.exact ? "exact" : "shape";
  line["end_items"] = result.contents.items;
  line["end_hash"] = hex(result.contents.hash);
  return line;
}

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

void Table::print(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < columns_.size() && i < cells.size(); ++i) {
    const int width = columns_[i].width;
    if (i > 0) line += "  ";
    line += width < 0 ? fmt::format("{:<{}}", cells[i], -width)
                      : fmt::format("{:>{}}", cells[i], width);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out_ << line << std::endl;  // people watch
}

void print_measurements(std::ostream& out, std::string_view bench, std::uint64_t count, bool json) {
  if (!json) return fmt::print(out, "total: {} measurements\n", count);
  Json line;
  line["bench"] = bench;
  line["total"] = true;
  line["measurements"] = count;
  print_line(out, line);
}

void say_answers_differ(const Output& output) {
  fmt::print(output.err,
             "espalier-bench: the targets did not answer alike, so one of them is wrong: compare "
             "result_hash and end_hash of the lines\n");
}

void say_nothing_measured(const Output& output, std::string_view experiment) {
  fmt::print(output.err,
             "espalier-bench: experiment '{}': no target that was asked for can do it: leave "
             "--target away, or see --help\n",
             experiment);
}

int print_total(const Output& output, std::string_view bench, const RunTotal& total, bool json) {
  if (json) {
    Json line;
    line["bench"] = bench;
    line["total"] = true;
    line["runs"] = total.runs;
    line["ops"] = total.ops;
    line["result_hashes_equal"] = total.equal;
    print_line(output.out, line);
  } else {
    fmt::print(output.out, "total: {} runs, {} operations{}\n", total.runs,
               short_number(static_cast<double>(total.ops)),
               total.equal ? "; all answers equal" : "; THE ANSWERS DIFFER");
  }
  if (!total.equal) say_answers_differ(output);
  return total.equal && total.runs != 0 ? 0 : 1;
}

void print_line(std::ostream& out, const Json& line) {
  out << line.dump() << std::endl;  // whoever follows sees each result when it is there
}

Json probes_json(std::optional<double> before_ns, std::optional<double> after_ns) {
  return {{"before", optional_number(before_ns)}, {"after", optional_number(after_ns)}};
}

std::string probes_text(std::optional<double> before_ns, std::optional<double> after_ns) {
  const auto text = [](std::optional<double> ns) {
    return ns ? fmt::format("{:.0f}", *ns) : std::string("-");
  };
  return text(before_ns) + " / " + text(after_ns);
}

std::vector<Table::Column> run_columns() {
  return {{"target", -10}, {"ops/s", 8},  {"items/s", 8}, {"p50 ns", 8},    {"p99 ns", 8},
          {"p99.9 ns", 8}, {"load/s", 8}, {"B/item", 7},  {"probe ns", 11}, {"result hash", -16}};
}

std::vector<std::string> run_cells(const RunResult& result) {
  const auto or_dash = [](double value) {
    return value > 0 ? short_number(value) : std::string("-");
  };
  return {std::string(name(result.target)),
          short_number(result.ops_per_s()),
          or_dash(result.items_per_s()),
          std::to_string(result.latencies.percentile(0.5)),
          std::to_string(result.latencies.percentile(0.99)),
          std::to_string(result.latencies.percentile(0.999)),
          or_dash(result.load_ops_per_s),
          fmt::format("{:.1f}", result.bytes_per_item),
          probes_text(result.probe_before_ns, result.probe_after_ns),
          result.complete ? hex(result.result_hash) : std::string("time was up")};
}

}  // namespace espalier::bench
