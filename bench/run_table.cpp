// SPDX-License-Identifier: Apache-2.0
#include "bench/run_table.hpp"
#include "bench/table_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace espalier::bench {
namespace {

using table::PipelineBuilder;
using wire::Aggregate;
using wire::ExpressionKind;

constexpr std::array<std::string_view, 8> kTableExperiments{
    "response", "project", "select", "distinct", "group", "regex", "decrypt", "clients"};
constexpr std::array<std::string_view, 12> kTableTargets{"read",   "copy", "stage",  "scalar",
                                                         "absl",   "re2",  "evp",    "local",
                                                         "remote", "pull", "chunks", "buffers"};
constexpr std::string_view kPushed = "pushed";

std::size_t column_of_groups(std::uint64_t groups) {
  const auto* const at = std::ranges::find(kGroupCounts, groups);
  return kKeysColumn + static_cast<std::size_t>(at - std::begin(kGroupCounts));
}

TableQuery limited(std::uint64_t rows) {
  TableQuery query;
  query.workload = "limit";
  query.parameters["rows"] = rows;
  query.build = [rows](PipelineBuilder& builder) { builder.limit(rows); };
  return query;
}

TableQuery projected(std::uint32_t row_bytes, bool smart) {
  TableQuery query;
  query.workload = "three-columns";
  query.parameters["row_bytes"] = row_bytes;
  query.parameters["addressing"] = smart ? "smart" : "whole";
  query.row_bytes = row_bytes;
  query.build = [smart](PipelineBuilder& builder) {
    builder.address(smart ? wire::Addressing::smart : wire::Addressing::full);
    const PipelineBuilder::NodeId values[] = {builder.column(0), builder.column(1),
                                              builder.column(2)};
    builder.project(values);
  };
  return query;
}

TableQuery selected(unsigned percent, bool encrypted) {
  TableQuery query;
  query.workload = encrypted ? "decrypt-where" : "where";
  query.parameters["percent"] = percent;
  query.kind = encrypted ? TableKind::encrypted : TableKind::words;
  query.build = [percent](PipelineBuilder& builder) {
    builder.filter(
        builder.binary(ExpressionKind::less, builder.column(kThousandColumn),
                       builder.constant(table::integer_constant(std::int64_t{percent} * 10))));
  };
  return query;
}

TableQuery matching(const TextPattern& pattern) {
  TableQuery query;
  query.workload = "matches";
  query.parameters["pattern"] = pattern.name;
  query.row_bytes = kTextBytes;
  query.kind = TableKind::texts;
  query.regex = pattern.regex;
  query.build = [regex = pattern.regex](PipelineBuilder& builder) {
    builder.filter(builder.matches(builder.column(0), table::text_constant(regex)));
  };
  return query;
}

TableQuery keyed(bool distinct, std::uint64_t groups) {
  TableQuery query;
  query.workload = distinct ? "distinct" : "group-sum";
  query.parameters["groups"] = groups;
  query.key_column = column_of_groups(groups);
  query.build = [distinct, column = query.key_column](PipelineBuilder& builder) {
    const PipelineBuilder::NodeId keys[] = {builder.column(column)};
    if (distinct) {
      builder.project(keys);
      builder.distinct();
    } else {
      const PipelineBuilder::AggregateOf sums[] = {{Aggregate::sum, builder.column(kValueColumn)}};
      builder.group_by(keys, sums);
    }
  };
  return query;
}

}  // namespace

std::vector<TableQuery> table_queries(const TableOptions& options, std::string_view experiment) {
  std::vector<TableQuery> queries;
  if (experiment == "response") {
    for (const std::uint64_t rows : {1, 8, 64, 512, 4096, 32768}) queries.push_back(limited(rows));
  } else if (experiment == "project") {
    for (const std::uint32_t row_bytes : {64, 256, 512}) {
      queries.push_back(projected(row_bytes, false));
      if (row_bytes != 64) queries.push_back(projected(row_bytes, true));
    }
  } else if (experiment == "select") {
    for (const unsigned percent : {1, 25, 50, 100}) queries.push_back(selected(percent, false));
  } else if (experiment == "decrypt") {
    for (const unsigned percent : {1, 25, 100}) queries.push_back(selected(percent, true));
  } else if (experiment == "regex") {
    for (const TextPattern& pattern : kPatterns) queries.push_back(matching(pattern));
  } else {
    for (const std::uint64_t groups : options.groups) {
      queries.push_back(keyed(experiment != "group", groups));
    }
  }
  return queries;
}

std::string table_experiment_names() {
  return fmt::format("{}", fmt::join(kTableExperiments, ", "));
}

std::string table_target_names() {
  return fmt::format("{}, {}", fmt::join(kTableTargets, ", "), kPushed);
}

std::optional<std::string> problem_of(const TableOptions& options) {
  if (options.repeats == 0) return "--repeat must be at least 1";
  if (options.table_bytes < 64 * 64) return "--table-bytes must be at least 4096";
  if (options.transports.empty()) return "--transport names none";
  for (const NodeTransport transport : options.transports) {
    if (transport != NodeTransport::unix_socket && transport != NodeTransport::shm) {
      return "--transport: a node in a process of its own is asked through unix or shm";
    }
  }
  for (const std::uint64_t groups : options.groups) {
    if (std::ranges::count(kGroupCounts, groups) == 0) {
      return fmt::format("--groups: there are {}", fmt::join(kGroupCounts, ", "));
    }
  }
  for (const std::uint32_t clients : options.clients) {
    if (clients == 0 || clients > 64) return "--clients must be 1 to 64";
  }
  for (const std::string& target : options.targets) {
    if (target != kPushed && std::ranges::count(kTableTargets, target) == 0) {
      return fmt::format("--target {}: there are {}", target, table_target_names());
    }
  }
  return problem_of_experiments(options.experiments, kTableExperiments);
}

int run_table(const TableOptions& options, const Output& output) {
  // However it ends, the node's process does too, and a gibibyte is free again.
  const struct Forget {
    ~Forget() {
      TableNode::forget();
      TableData::forget();
    }
  } forget;
  PointRun run("table", options, output);
  for (const std::string_view experiment : kTableExperiments) {
    if (!is_chosen(options.experiments, experiment)) continue;
    if (experiment == "clients") {
      run.run(experiment, client_points(options));
      continue;
    }
    std::vector<MeasuredPoint> points = stage_points(options, experiment);
    std::ranges::move(way_points(options, experiment), std::back_inserter(points));
    run.run(experiment, points);
  }
  return run.finish();
}

}  // namespace espalier::bench
