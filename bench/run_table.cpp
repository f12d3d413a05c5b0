// SPDX-License-Identifier: Apache-2.0
#include "bench/run_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "bench/benchmark.hpp"
#include "bench/table_node.hpp"

namespace espalier::bench {
namespace {

using table::PipelineBuilder;
using wire::Aggregate;
using wire::ExpressionKind;

constexpr std::array<std::string_view, 7> kTableExperiments{
    "response", "project", "select", "distinct", "group", "regex", "decrypt"};
constexpr std::array<std::string_view, 13> kTableTargets{
    "read",  "copy",   "stage", "scalar", "absl",    "re2",   "evp",
    "local", "remote", "pull",  "chunks", "buffers", "pushed"};

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

void TableOptions::declare(OptionRows& rows) {
  const std::string names = fmt::to_string(fmt::join(kTableTargets, ", "));
  rows.texts("--target", targets, names + "; by default all");
  rows.choices("--transport", transports, parse_node_transport,
               "unix, shm; to the node; both by default");
  rows.number("--table-bytes", table_bytes, {64 * 64}, "of rows, about");
  rows.numbers("--groups", groups, {}, "those to measure (group, distinct, clients)");
  rows.numbers("--clients", clients, {1, 64}, "at a time (clients)");
  rows.of_points(*this);
  for (const NodeTransport transport : transports) {
    rows.require(transport == NodeTransport::unix_socket || transport == NodeTransport::shm,
                 "--transport: a node in a process of its own is asked through unix or shm");
  }
  for (const std::uint64_t count : groups) {
    rows.require(std::ranges::count(kGroupCounts, count) != 0,
                 fmt::format("--groups: there are {}", fmt::join(kGroupCounts, ", ")));
  }
  for (const std::string& target : targets) {
    rows.require(std::ranges::count(kTableTargets, target) != 0,
                 fmt::format("--target {}: there are {}", target, names));
  }
}

std::vector<ExperimentRow> TableOptions::experiment_rows() const {
  // At each exit, the node's process ends too, and a gibibyte is freed.
  struct Forget {
    Forget() = default;
    Forget(const Forget&) = delete;
    Forget& operator=(const Forget&) = delete;
    ~Forget() {
      TableNode::forget();
      TableData::forget();
    }
  };
  const auto forget = std::make_shared<const Forget>();
  std::vector<ExperimentRow> rows;
  for (const std::string_view experiment : kTableExperiments) {
    rows.push_back({experiment, [this, experiment, forget](Report&) {
                      std::vector<MeasuredPoint> points = stage_points(*this, experiment);
                      std::ranges::move(way_points(*this, experiment), std::back_inserter(points));
                      return points;
                    }});
  }
  rows.push_back({"clients", [this, forget](Report&) { return client_points(*this); }});
  return rows;
}

}  // namespace espalier::bench
