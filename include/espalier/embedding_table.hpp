// SPDX-License-Identifier: Apache-2.0
// Embedding tables: numbered rows of floats, of which bags are reduced to one row each beside the
// memory, as recommendation models need it.
//
//   auto items = store.create_embedding_table("items", {.dimension = 64});
//   items->append(values);                                   // rows of 64 floats each
//   const std::uint32_t ids[] = {3, 17, 3, 99};
//   const std::uint32_t offsets[] = {0, 2};                  // two bags: {3, 17} and {3, 99}
//   auto sums = items->reduce(Reduction::sum, {ids, offsets});   // 2 x 64 floats
//
// A table may be written while it is read. Rows are atomic: each is read as it was before or after
// a replacement; a bag may mix old and new rows. Sums are taken in the order of the ids, in single
// precision. NaN and infinity follow IEEE 754; a NaN propagates, also through max and min.
//
// In a table with groups of rows (group()), sums, means and unweighted inner products read sums of
// groups in place of rows, and add them in another order. For n rows, the sum of each column is
// within n / 2^23 of the sum of their magnitudes from the result by rows alone. An intermediate
// overflow may give infinity in one order and not in the other.
//
// Errors of all calls: forked (another process made the handle, docs/fork.md); not_found (the table
// was dropped, or a new node took over without it). On a node: connection_lost (a write without an
// answer may or may not be done), not_permitted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/embedding_types.hpp"
#include "espalier/map.hpp"
#include "espalier/table_error.hpp"

namespace espalier {

namespace client {
class EmbeddingTableImpl;
}  // namespace client

/// Statistics of one embedding table. Each is right, but they are not one consistent snapshot.
struct EmbeddingStats {
  std::uint64_t rows = 0;
  std::uint64_t pages = 0;  ///< of 2 MiB
  std::uint64_t memory_bytes = 0;
  std::uint64_t reductions = 0;     ///< bags reduced
  std::uint64_t rows_gathered = 0;  ///< rows read for them
  std::uint64_t rows_replaced = 0;
  std::uint64_t rereads = 0;  ///< steps repeated after a concurrent replacement
  std::uint64_t groups = 0;
  std::uint64_t grouped_rows = 0;
  std::uint64_t group_bytes = 0;        ///< part of memory_bytes: sums of groups and row numbers
  std::uint64_t sums_gathered = 0;      ///< part of rows_gathered: sums of groups
  std::uint64_t rows_saved = 0;         ///< rows not read, replaced by sums
  std::uint64_t grouping_groups = 0;    ///< of a grouping in progress; 0: none
  std::uint64_t grouping_computed = 0;  ///< of these, groups already summed
};

struct TableBags;

/// One of many reductions of a table. What it points to must live until they are done.
struct ReduceRequest {
  Reduction reduction = Reduction::sum;
  EmbeddingBags bags{};
  std::span<const float> vector{};
  /// As many floats as the bags come to, of unspecified values after an error.
  std::span<float> results{};
  /// Afterwards: its code is `invalid` where all went well.
  TableError error{};
};

/// A handle; copies name the same table.
/// Thread: all calls from any number of threads.
class EmbeddingTable {
 public:
  /// Bytes of the rows of one append, as stored.
  static constexpr std::size_t kAppendBytesMax = std::size_t{1} << 20;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const EmbeddingOptions& options() const;
  /// Bytes of a row as stored.
  [[nodiscard]] std::uint32_t row_bytes() const;
  /// Rows that one append takes.
  [[nodiscard]] std::size_t append_rows_max() const { return kAppendBytesMax / row_bytes(); }

  /// Appends rows, stored contiguously, all or none; returns the number of the first. fp16 and bf16
  /// round each value to the nearest; int8 derives scale and bias from the least and the greatest
  /// value of each row.
  /// Cost: a copy; on a node one round trip and work of a helper thread.
  /// Errors: invalid_argument (no row, a partial row, more than append_rows_max(); int8: a value is
  /// not finite or above 65504; the words name it), out_of_memory (nothing was changed).
  TableResult<std::uint64_t> append(std::span<const float> rows);
  /// Replaces one row.
  /// Cost: a copy; on a node one round trip.
  /// Errors: invalid_argument (no such row; not a row's number of values; int8: as above).
  TableResult<void> replace(std::uint64_t row, std::span<const float> values);

  /// Reduces each bag to `dimension` floats, stored contiguously. inner_product yields one float
  /// for each bag: the product of the bag's sum with `vector`. An empty bag yields zeros.
  /// Cost: the cache lines of each row, once; on a node one round trip for as many bags as fit an
  /// answer of 256 KiB and a request of 1 MiB.
  /// Errors: invalid_argument, in words: an id without a row (detail: the id), impossible offsets
  /// or weights, a missing vector or one of another length, a bag that exceeds a request to a node
  /// (about four million ids with weights). outdated (the table's grouping is not the one by which
  /// ids were renumbered; detail: its number, or 0).
  TableResult<std::vector<float>> reduce(Reduction reduction, const EmbeddingBags& bags,
                                         std::span<const float> vector = {}) const;
  /// As reduce(), into the caller's memory, which has unspecified values after an error.
  /// Requires: as many floats as the bags yield.
  TableResult<void> reduce_into(std::span<float> results, Reduction reduction,
                                const EmbeddingBags& bags,
                                std::span<const float> vector = {}) const;

  /// Runs many independent reductions, in no particular order; on a node up to `in_flight` of them
  /// (1 to 256) are on their way at a time. Each request gets its own error.
  /// Cost: as reduce(), but waits for a node are shared; one by one over a table that is read by
  /// READs, or lies in this process.
  /// Errors of requests: as reduce(). Of the call: forked, invalid_argument (`in_flight`), and no
  /// request was run.
  TableResult<void> reduce_many(std::span<ReduceRequest> requests,
                                std::uint32_t in_flight = 32) const;

  /// Reduces bags of several tables, of any dimension and number of bags, in one call. Returns the
  /// floats of all, in the order of the bags, each as reduce() returns it.
  /// Cost: as reduce(), but on a node one round trip for as many tables as fit an answer of 256 KiB
  /// and a request of 1 MiB.
  /// Errors: as reduce(); words begin with the name of the table concerned. not_permitted if the
  /// client's role is for other names.
  [[nodiscard]] static TableResult<std::vector<float>> reduce_tables(
      Reduction reduction, std::span<const TableBags> tables);

  /// Replaces the grouping of the table: keeps the sums of these groups of rows, and of no others;
  /// with no groups, of none. They are ready when the call returns. Until then, after an error, and
  /// if the client of a node disconnects meanwhile, the previous grouping stays. Returns the number
  /// of the grouping, or 0. Rows appended later have no group.
  /// Cost: 8 bytes for each row and for each row of a group, and group_sums() rows of fp32 for each
  /// group, computed beside the sums of the previous grouping; replace() updates the sums of its
  /// row's group. On a node one round trip and work of a helper thread; stats() shows the progress.
  /// Errors: invalid_argument, in words (sizes; ids without a row or given twice; a table of more
  /// than 2^31 rows; on a node more groups than fit a request of 32 MiB), out_of_memory, busy
  /// (another grouping of the table is in progress).
  TableResult<std::uint32_t> group(const RowGroups& groups);
  /// Renumbers ids by the table's grouping, for bags that carry that grouping, so that the table
  /// need not look up their ids. Returns the grouping, or 0 if there are no groups and ids stay.
  /// Cost: on a node a round trip for each 4096 ids.
  /// Errors: invalid_argument (an id without a row; in a table with groups an id of 2^31 or more),
  /// outdated (the grouping changed meanwhile). After an error the ids are unusable.
  TableResult<std::uint32_t> renumber(std::span<std::uint32_t> ids) const;

  /// Cost: on a node one round trip.
  [[nodiscard]] Result<EmbeddingStats> stats() const;
  /// Checks the whole table; returns violations, in words.
  /// Errors: unsupported (on a node).
  [[nodiscard]] Result<std::vector<std::string>> audit() const;

 private:
  friend class Store;
  friend class client::EmbeddingTableImpl;
  explicit EmbeddingTable(std::shared_ptr<client::EmbeddingTableImpl> impl)
      : impl_(std::move(impl)) {}
  std::shared_ptr<client::EmbeddingTableImpl> impl_;
};

/// The request to one of several tables.
struct TableBags {
  EmbeddingTable table;
  EmbeddingBags bags;
  std::span<const float> vector{};  ///< inner_product only
};

}  // namespace espalier
