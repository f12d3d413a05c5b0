// SPDX-License-Identifier: Apache-2.0
// Tables and queries of `espalier-bench table`, alike for all who answer them.
//
// Thread: building, one at a time; reading, any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "bench/report.hpp"
#include "catalog/catalog.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/region.hpp"
#include "table/pipeline.hpp"
#include "table/pipeline_builder.hpp"
#include "table/table.hpp"

namespace espalier::bench {

/// Columns of a table of the benchmark, 8 bytes each and never null; what is behind them is noise.
enum TableColumn : std::size_t {
  kThousandColumn,  ///< below 1000, at random: for filters
  kValueColumn,     ///< below 1000: for sums
  kKeysColumn,      ///< the first of those for groups
};
/// How many values the columns from kKeysColumn on have, at random.
inline constexpr std::uint64_t kGroupCounts[] = {16, 1024, 65536, 1 << 20};

/// A table in this process, on pages as those of a node.
class TableData {
 public:
  /// About `bytes` of rows of `row_bytes`. Errors: throws std::runtime_error.
  TableData(std::uint64_t bytes, std::uint32_t row_bytes, std::uint64_t seed);
  /// The last one is kept, since many points in a row ask for the same.
  static std::shared_ptr<const TableData> of(std::uint64_t bytes, std::uint32_t row_bytes,
                                             std::uint64_t seed);
  static void forget();

  [[nodiscard]] const std::shared_ptr<table::Table>& table() const { return table_; }
  [[nodiscard]] std::uint64_t rows() const { return table_->rows(); }
  [[nodiscard]] std::uint64_t bytes() const { return rows() * table_->schema().row_bytes(); }

 private:
  memory::Region region_;
  memory::BufferPool pool_;
  catalog::Catalog catalog_;
  std::shared_ptr<table::Table> table_;

  static std::shared_ptr<const TableData> kept_;
  static std::array<std::uint64_t, 3> kept_for_;
};

/// One query, and what its point says of it.
struct TableQuery {
  std::string workload;
  Json parameters;
  std::uint32_t row_bytes = 64;
  std::function<void(table::PipelineBuilder&)> build;
  std::size_t key_column = 0;  ///< of group and distinct, which peers do by hand
};

/// Its pipeline, as a message. Errors: throws std::runtime_error.
[[nodiscard]] std::vector<std::byte> message_of(const TableQuery& query);

/// A sum over rows of whole words that does not depend on their order.
[[nodiscard]] std::uint64_t hash_of_rows(std::span<const std::byte> rows, std::size_t row_bytes);

/// Time of a pass, by the clock and of this thread's processor: on a machine with other work, the
/// second still tells what the work costs.
struct PassTime {
  double seconds = 0;
  double cpu_seconds = 0;
};
class PassWatch {
 public:
  PassWatch();
  [[nodiscard]] PassTime elapsed() const;

 private:
  base::Stopwatch watch_;
  std::uint64_t cpu_ns_;
};
/// Processor time of the calling thread.
[[nodiscard]] std::uint64_t thread_cpu_ns();

/// How long one core takes to read, or to copy, the table's own pages in order.
[[nodiscard]] PassTime read_pass(const TableData& data);
[[nodiscard]] PassTime copy_pass(const TableData& data);

}  // namespace espalier::bench
