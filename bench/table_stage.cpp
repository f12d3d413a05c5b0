// SPDX-License-Identifier: Apache-2.0
// Points of `espalier-bench table` without a client: the executor into a stage, and its baselines:
// reading the same pages, copying them, and the same by absl, RE2 and OpenSSL.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <re2/re2.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/cpu_clock.hpp"
#include "bench/map_session.hpp"
#include "bench/probe.hpp"
#include "bench/run_table.hpp"
#include "kinds/table/snapshot_source.hpp"
#include "kinds/table/staged_run.hpp"
#include "kinds/table/wide.hpp"

namespace espalier::bench {
namespace {

constexpr std::size_t kGroupBytes = std::size_t{64} << 20;

/// The result of one run.
struct StageRun {
  wire::QueryNumbers numbers{};
  std::uint64_t rows = 0;
  std::uint64_t hash = 0;
  PassTime time;
  std::uint64_t longest_step_ns = 0;
};

struct StageOptions {
  std::uint64_t seed = 0;
  base::Isa isa = base::isa();
  bool looks = false;  ///< reads every row, and the clock after every step
};

/// A run in steps, as by a node's helper (kinds/table/offload/query_run.cpp), into 64 KiB that are
/// always drained.
StageRun run_into_stage(const TableData& data, const table::Pipeline& pipeline,
                        const StageOptions& options) {
  table::SnapshotSource source(data.table());
  auto cipher = data.new_cipher();
  StageRun result;
  const PassWatch watch;
  table::StagedRun run(pipeline, source,
                       {.group_bytes = kGroupBytes,
                        .seed = options.seed,
                        .isa = options.isa,
                        .decrypt = cipher ? &*cipher : nullptr});
  const std::size_t row_bytes = pipeline.result.row_bytes();
  table::RunState state = table::RunState::running;
  while (state == table::RunState::running || state == table::RunState::stalled) {
    const std::uint64_t begin_ns = options.looks ? base::thread_cpu_ns() : 0;
    state = run.step(run.step_rows());
    if (options.looks) {
      result.longest_step_ns = std::max(result.longest_step_ns, base::thread_cpu_ns() - begin_ns);
    }
    if (state == table::RunState::running) continue;
    result.rows += run.rows().size() / row_bytes;
    if (options.looks) result.hash += hash_of_rows(run.rows(), row_bytes);
    run.clear();
  }
  result.time = watch.elapsed();
  if (state != table::RunState::done) throw std::runtime_error("a query of the benchmark failed");
  result.numbers = run.numbers();
  return result;
}

/// A pass between two that read the same pages.
class BesideReading {
 public:
  explicit BesideReading(const TableData& data) : data_(data), before_(read_pass(data)) {}
  void add_to(PointSample& sample, const PassTime& pass) const {
    const PassTime after = read_pass(data_);
    sample.took(data_.rows(), pass.seconds);
    const auto bytes = static_cast<double>(data_.bytes());
    const double read_s = (before_.seconds + after.seconds) / 2;
    const double read_cpu_s = (before_.cpu_seconds + after.cpu_seconds) / 2;
    sample.numbers.emplace_back("gb_per_s", bytes / pass.seconds * 1e-9);
    sample.numbers.emplace_back("read_gb_per_s", bytes / read_s * 1e-9);
    sample.numbers.emplace_back("of_read", read_s / pass.seconds);
    sample.numbers.emplace_back("gb_per_cpu_s", bytes / pass.cpu_seconds * 1e-9);
    sample.numbers.emplace_back("read_gb_per_cpu_s", bytes / read_cpu_s * 1e-9);
    sample.numbers.emplace_back("cpu_of_read", read_cpu_s / pass.cpu_seconds);
  }

 private:
  const TableData& data_;
  PassTime before_;
};

MeasuredPoint new_table_point(const TableOptions& options, std::string target,
                              const TableQuery& query) {
  Json parameters = query.parameters;
  parameters["table_bytes"] = options.table_bytes;
  return {.target = std::move(target),
          .workload = query.workload,
          .parameters = std::move(parameters),
          .answers = query.workload + " " + query.parameters.dump()};
}

MeasuredPoint stage_point(const TableOptions& options, const std::string& target,
                          const TableQuery& query, base::Isa isa) {
  MeasuredPoint point = new_table_point(options, target, query);
  point.measure = [=] {
    const auto data = TableData::of(query.spec(options.table_bytes, options.seed));
    const table::Pipeline pipeline = pipeline_of(message_of(query), data->table()->schema());
    PointSample sample;
    run_pinned([&] {
      // One run reads every row and the clock: neither is in the rate.
      StageOptions run{.seed = options.seed, .isa = isa, .looks = true};
      const StageRun hashed = run_into_stage(*data, pipeline, run);
      run.looks = false;
      const BesideReading beside(*data);
      const StageRun timed = run_into_stage(*data, pipeline, run);
      if (timed.rows != hashed.rows) throw std::runtime_error("two runs give different rows");
      sample.checksum = hashed.hash;
      beside.add_to(sample, timed.time);
      sample.numbers.emplace_back("result_rows", static_cast<double>(timed.rows));
      sample.numbers.emplace_back("bytes_per_op", static_cast<double>(timed.numbers.bytes_read) /
                                                      static_cast<double>(data->rows()));
      sample.numbers.emplace_back("longest_step_us",
                                  static_cast<double>(hashed.longest_step_ns) * 1e-3);
    });
    return sample;
  };
  return point;
}

/// One pass over all rows of `data`, which returns the hash of the query's result rows.
template <class Pass>
MeasuredPoint peer_point(const TableOptions& options, std::string target, const TableQuery& query,
                         Pass pass) {
  MeasuredPoint point = new_table_point(options, std::move(target), query);
  point.measure = [=] {
    const auto data = TableData::of(query.spec(options.table_bytes, options.seed));
    PointSample sample;
    run_pinned([&] {
      const BesideReading beside(*data);
      PassTime time;
      sample.checksum = pass(*data, query, time);
      beside.add_to(sample, time);
    });
    return sample;
  };
  return point;
}

std::uint64_t word_at(const std::byte* row, std::size_t column) {
  std::uint64_t word = 0;
  std::memcpy(&word, row + 8 * column, sizeof word);
  return word;
}

template <class Use>
void for_rows(const TableData& data, Use&& use) {
  const table::TableSnapshot snapshot(data.table());
  for (std::uint64_t page = 0; page < snapshot.pages(); ++page) {
    const auto span = value_or_throw(snapshot.page(page), "cannot read the table");
    for (std::uint32_t i = 0; i < span.count; ++i) use(span[i]);
  }
}

std::uint64_t absl_groups(const TableData& data, const TableQuery& query, PassTime& time) {
  const PassWatch watch;
  absl::flat_hash_map<std::uint64_t, table::Wide> sums;
  for_rows(data, [&, column = query.key_column](const std::byte* row) {
    sums[word_at(row, column)] += static_cast<std::int64_t>(word_at(row, kValueColumn));
  });
  time = watch.elapsed();
  std::uint64_t hash = 0;
  for (const auto& [key, sum] : sums) {
    // As a row of a group: key, sum in two halves, no nulls.
    const std::uint64_t row[] = {key, static_cast<std::uint64_t>(table::low_half(sum)),
                                 static_cast<std::uint64_t>(table::high_half(sum)), 0};
    hash += hash_of_rows(std::as_bytes(std::span(row)), sizeof row);
  }
  return hash;
}

std::uint64_t absl_distinct(const TableData& data, const TableQuery& query, PassTime& time) {
  const PassWatch watch;
  absl::flat_hash_set<std::uint64_t> keys;
  for_rows(data, [&, column = query.key_column](const std::byte* row) {
    keys.insert(word_at(row, column));
  });
  time = watch.elapsed();
  std::uint64_t hash = 0;
  for (const std::uint64_t key : keys) {
    hash += hash_of_rows(std::as_bytes(std::span(&key, 1)), sizeof key);
  }
  return hash;
}

std::uint64_t re2_selection(const TableData& data, const TableQuery& query, PassTime& time) {
  const re2::RE2 regex(query.regex, re2::RE2::Quiet);
  std::vector<const std::byte*> found;
  found.reserve(data.rows());
  const PassWatch watch;
  for_rows(data, [&](const std::byte* row) {
    const re2::StringPiece text(reinterpret_cast<const char*>(row), kTextBytes);
    if (re2::RE2::PartialMatch(text, regex)) found.push_back(row);
  });
  time = watch.elapsed();
  std::uint64_t hash = 0;
  for (const std::byte* row : found) hash += hash_of_rows({row, kTextBytes}, kTextBytes);
  return hash;
}

/// Decrypts everything, 32 KiB at a time, with plain OpenSSL, and selects nothing.
std::uint64_t evp_decryption(const TableData& data, const TableQuery&, PassTime& time) {
  auto cipher =
      value_or_throw(table::CtrCipher::derived(TableData::key(), data.table()->salt(),
                                               table::kTableKeyInfo, table::CtrCipher::Form::evp),
                     "cannot decrypt");
  std::vector<std::byte> plain(std::size_t{32} << 10);
  const table::TableSnapshot snapshot(data.table());
  const PassWatch watch;
  for (std::uint64_t page = 0; page < snapshot.pages(); ++page) {
    const auto rows = value_or_throw(snapshot.page(page), "cannot read the table");
    for (std::size_t at = 0; at < rows.bytes(); at += plain.size()) {
      const std::size_t bytes = std::min(plain.size(), rows.bytes() - at);
      cipher.apply(rows.cipher_page, rows.page_offset + at, rows.rows + at, plain.data(), bytes);
    }
  }
  time = watch.elapsed();
  return 0;
}

MeasuredPoint rate_point(const TableOptions& options, const std::string& target, TableQuery query,
                         PassTime (*pass)(const TableData&)) {
  query.workload = "all";
  query.parameters = {};
  MeasuredPoint point = new_table_point(options, target, query);
  point.answers = target;
  point.measure = [=] {
    const auto data = TableData::of(query.spec(options.table_bytes, options.seed));
    PointSample sample;
    run_pinned([&] {
      if (target == "copy") static_cast<void>(pass(*data));  // touches what is copied to
      const BesideReading beside(*data);
      beside.add_to(sample, pass(*data));
    });
    return sample;
  };
  return point;
}

}  // namespace

std::vector<MeasuredPoint> stage_points(const TableOptions& options, std::string_view experiment) {
  std::vector<MeasuredPoint> points;
  if (experiment == "response") return points;
  const auto wants = [&](std::string_view target) { return is_chosen(options.targets, target); };
  const std::vector<TableQuery> queries = table_queries(options, experiment);
  if (wants("read")) points.push_back(rate_point(options, "read", queries.front(), read_pass));
  if (wants("copy")) points.push_back(rate_point(options, "copy", queries.front(), copy_pass));
  if (experiment == "decrypt" && wants("evp")) {
    TableQuery query = queries.front();
    query.workload = "decrypt-only";
    points.push_back(peer_point(options, "evp", query, evp_decryption));
  }
  for (const TableQuery& query : queries) {
    if (wants("stage")) points.push_back(stage_point(options, "stage", query, base::isa()));
    if (wants("scalar") && experiment == "select") {
      points.push_back(stage_point(options, "scalar", query, base::Isa::scalar));
    }
    if (wants("absl") && experiment == "group") {
      points.push_back(peer_point(options, "absl", query, absl_groups));
    }
    if (wants("absl") && experiment == "distinct") {
      points.push_back(peer_point(options, "absl", query, absl_distinct));
    }
    if (wants("re2") && experiment == "regex") {
      points.push_back(peer_point(options, "re2", query, re2_selection));
    }
  }
  return points;
}

}  // namespace espalier::bench
