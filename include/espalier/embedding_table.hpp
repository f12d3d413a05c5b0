// SPDX-License-Identifier: Apache-2.0
// Embedding tables: rows of numbers, found by their number, of which bags are reduced to one row
// each beside the memory, as recommendation models want it.
//
//   auto items = store.create_embedding_table("items", {.dimension = 64});
//   items->append(values);                                   // rows of 64 floats each
//   const std::uint32_t ids[] = {3, 17, 3, 99};
//   const std::uint32_t offsets[] = {0, 2};                  // two bags: {3, 17} and {3, 99}
//   auto sums = items->reduce(Reduction::sum, {ids, offsets});   // 2 x 64 floats
//
// A table may be written while it is read: rows are whole, each as it was before a replacement or
// after it, and a bag may have old rows and new ones. Sums are taken in the order of the ids, in
// single precision. NaN and infinity are what IEEE 754 says: a NaN stays one, in max and min too.
//
// Of a table with groups of rows (group()), sums, means and inner products without weights read
// sums of groups in place of rows, and add them in another order: of n rows, the sum of each column
// is within n / 2^23 of the sum of their magnitudes from that by rows alone, and one that overflows
// on the way may be infinite in one order and not in the other.
//
// Errors of all calls: forked (another process made the handle, docs/fork.md); not_found (it was
// dropped, or another node has come, which knows nothing of it). On a node: connection_lost (a
// write without an answer may or may not be done), not_permitted.
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

/// Numbers about one embedding table, each right but not all of one instant.
struct EmbeddingStats {
  std::uint64_t rows = 0;
  std::uint64_t pages = 0;  ///< of 2 MiB
  std::uint64_t memory_bytes = 0;
  std::uint64_t reductions = 0;     ///< bags that were reduced
  std::uint64_t rows_gathered = 0;  ///< rows that were read for them
  std::uint64_t rows_replaced = 0;
  std::uint64_t rereads = 0;  ///< steps that met a replacement, and were done again
  std::uint64_t groups = 0;
  std::uint64_t grouped_rows = 0;
  std::uint64_t group_bytes = 0;        ///< of the memory: sums of groups, and their rows' numbers
  std::uint64_t sums_gathered = 0;      ///< of the rows that were gathered
  std::uint64_t rows_saved = 0;         ///< rows that were not read, for sums stood for them
  std::uint64_t grouping_groups = 0;    ///< of a grouping that is being made; 0: none is
  std::uint64_t grouping_computed = 0;  ///< of these, groups whose sums are there
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

/// A handle; copies lead to the same table. Thread: all calls from any number of threads.
class EmbeddingTable {
 public:
  /// Of the rows of one append, as they are stored.
  static constexpr std::size_t kAppendBytesMax = std::size_t{1} << 20;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const EmbeddingOptions& options() const;
  /// Bytes of a row as it is stored.
  [[nodiscard]] std::uint32_t row_bytes() const;
  /// So many rows one append takes.
  [[nodiscard]] std::size_t append_rows_max() const { return kAppendBytesMax / row_bytes(); }

  /// Appends rows, one behind the other, all or none; returns the number of the first. fp16 and
  /// bf16 round each value to the nearest; int8 chooses scale and bias by the least and the
  /// greatest value of each row.
  /// Cost: a copy; on a node one round trip, and a helper of it.
  /// Errors: invalid_argument (no row, part of one, more than append_rows_max(); int8: a value is
  /// not finite, or above 65504, which the words name), out_of_memory (nothing was changed).
  TableResult<std::uint64_t> append(std::span<const float> rows);
  /// Replaces one row. Cost: a copy; on a node one round trip.
  /// Errors: invalid_argument (there is no such row; not a row's values; int8: as above).
  TableResult<void> replace(std::uint64_t row, std::span<const float> values);

  /// Reduces each bag to dimension floats, one bag behind the other; of inner_product to one float
  /// each, the product of the bag's sum with `vector`. An empty bag is zeros.
  /// Cost: the lines of each row, once; on a node one round trip for as many bags as an answer of
  /// 256 KiB and a request of 1 MiB have room for.
  /// Errors: invalid_argument, in words: an id that is no row's (detail: the id), offsets or
  /// weights that cannot be, a vector of another length, or none; a bag that is too long for a
  /// request to a node (about four million ids with weights). outdated (the table has other groups
  /// than those by which ids are renumbered; detail: their number, or 0).
  TableResult<std::vector<float>> reduce(Reduction reduction, const EmbeddingBags& bags,
                                         std::span<const float> vector = {}) const;
  /// The same into memory of the caller's, which has unspecified values after an error.
  /// Requires: as many floats as the bags come to.
  TableResult<void> reduce_into(std::span<float> results, Reduction reduction,
                                const EmbeddingBags& bags,
                                std::span<const float> vector = {}) const;

  /// Does many reductions, each for itself and in no particular order; of a node so many of them
  /// are on their way at a time, 1 to 256. Says of each what went wrong.
  /// Cost: as of reduce(), but waits for a node are shared; a table that is read from elsewhere, or
  /// lies in this process, has them one by one.
  /// Errors of requests: as reduce(). Of the call: forked, invalid_argument (`in_flight`), and no
  /// request was done.
  TableResult<void> reduce_many(std::span<ReduceRequest> requests,
                                std::uint32_t in_flight = 32) const;

  /// Reduces bags of several tables, which may be of any dimension and number of bags, as a model
  /// asks for them; those results come first whose bags do. Returns the floats of all, as reduce()
  /// has them of each.
  /// Cost: as reduce(), but on a node one round trip for as many tables as an answer of 256 KiB and
  /// a request of 1 MiB have room for.
  /// Errors: as reduce(); words begin with the name of the table that they are about. A client
  /// whose role is for other names has not_permitted.
  [[nodiscard]] static TableResult<std::vector<float>> reduce_tables(
      Reduction reduction, std::span<const TableBags> tables);

  /// Keeps the sums of these groups of rows, and of no others; without groups none. They are there
  /// when it returns; until then the groups are as they were, and so they stay after an error, or
  /// if a node's client goes meanwhile. Returns the number of the grouping, or 0. Rows that are
  /// appended later have no group.
  /// Cost: 8 bytes for each row and each row of a group, and group_sums() rows of fp32 for each
  /// group, which are computed, beside those of the groups before; replace() computes those of its
  /// row's group, too. On a node one round trip, and a helper of it; stats() tells how far it is.
  /// Errors: invalid_argument, in words (sizes, or ids that no row has or that come twice; a table
  /// of more than 2^31 rows; on a node more groups than a request of 32 MiB has room for),
  /// out_of_memory, busy (another grouping of the table is being made).
  TableResult<std::uint32_t> group(const RowGroups& groups);
  /// Numbers ids as the table's groups do, for bags with this grouping, whose ids need not be
  /// looked up any more; returns the grouping, or 0 where there are no groups and ids stay.
  /// Cost: on a node a round trip for each 4096 ids.
  /// Errors: invalid_argument (an id that is no row's; of a table with groups one of 2^31 or more),
  /// outdated (other groups came meanwhile); ids are of no use then.
  TableResult<std::uint32_t> renumber(std::span<std::uint32_t> ids) const;

  /// Cost: on a node one round trip.
  [[nodiscard]] Result<EmbeddingStats> stats() const;
  /// Checks the whole table; returns what is wrong, in words. Errors: unsupported (of a node).
  [[nodiscard]] Result<std::vector<std::string>> audit() const;

 private:
  friend class Store;
  friend class client::EmbeddingTableImpl;
  explicit EmbeddingTable(std::shared_ptr<client::EmbeddingTableImpl> impl)
      : impl_(std::move(impl)) {}
  std::shared_ptr<client::EmbeddingTableImpl> impl_;
};

/// What is asked of one table of several.
struct TableBags {
  EmbeddingTable table;
  EmbeddingBags bags;
  std::span<const float> vector{};  ///< of inner_product alone
};

}  // namespace espalier
