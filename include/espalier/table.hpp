// SPDX-License-Identifier: Apache-2.0
// Relational tables in a store of this process or on a node: rows of typed columns, appended by a
// RowWriter and read by queries (query.hpp). Single rows are neither changed nor removed; a table
// is dropped as a whole.
//
//   auto schema = Schema::parse("id i64 not null, shop char(3), price decimal(8,2), day date");
//   auto sales = store.create_table("sales", *schema);
//   RowWriter rows = sales->writer();
//   rows.add(1, "ab", 1.50_dec, Date(std::chrono::year(2024) / 1 / 31));
//   rows.add(2, std::nullopt, 4.00_dec, std::nullopt);
//   auto first = rows.commit();
//
// Errors of all calls: forked for calls that need the store (another process made the handle,
// docs/fork.md). On a node: connection_lost (an append without an answer may or may not be done);
// unsupported (an older node without tables).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/map.hpp"
#include "espalier/table_error.hpp"
#include "espalier/table_key.hpp"
#include "espalier/value.hpp"

namespace espalier {

class Query;
class RowStream;

namespace client {
class SchemaImpl;
class TableImpl;
class RowWriterImpl;
}  // namespace client

/// The type of a column's values (docs/tables.md).
enum class ColumnKind : std::uint8_t {
  i8 = 1,
  i16 = 2,
  i32 = 3,
  i64 = 4,
  f32 = 5,
  f64 = 6,
  decimal = 7,
  date = 8,
  timestamp = 9,
  boolean = 10,
  fixed_char = 11,
  text = 12,
};

/// A type with its limits.
struct ColumnType {
  ColumnKind kind = ColumnKind::i64;
  std::uint8_t precision = 0;  ///< decimal: digits in all, at most 18
  std::uint8_t scale = 0;      ///< decimal: digits after the point
  std::uint16_t length = 0;    ///< char, text: bytes, 1 to 1024

  static constexpr ColumnType i8() { return {ColumnKind::i8}; }
  static constexpr ColumnType i16() { return {ColumnKind::i16}; }
  static constexpr ColumnType i32() { return {ColumnKind::i32}; }
  static constexpr ColumnType i64() { return {ColumnKind::i64}; }
  static constexpr ColumnType f32() { return {ColumnKind::f32}; }
  static constexpr ColumnType f64() { return {ColumnKind::f64}; }
  static constexpr ColumnType decimal(std::uint8_t precision, std::uint8_t scale) {
    return {ColumnKind::decimal, precision, scale, 0};
  }
  static constexpr ColumnType date() { return {ColumnKind::date}; }
  static constexpr ColumnType timestamp() { return {ColumnKind::timestamp}; }
  static constexpr ColumnType boolean() { return {ColumnKind::boolean}; }
  static constexpr ColumnType fixed_char(std::uint16_t length) {
    return {ColumnKind::fixed_char, 0, 0, length};
  }
  static constexpr ColumnType text(std::uint16_t length) {
    return {ColumnKind::text, 0, 0, length};
  }

  /// As in a schema's text, e.g. "decimal(12,2)".
  [[nodiscard]] std::string to_text() const;
  friend bool operator==(const ColumnType&, const ColumnType&) = default;
};

struct Column {
  std::string name;  ///< 1 to 63 bytes
  ColumnType type;
  bool nullable = true;

  friend bool operator==(const Column&, const Column&) = default;
};

/// 1 to 256 columns with distinct names, whose rows have at most 32 KiB. A value: copies share the
/// columns. Thread: const calls from any.
class Schema {
 public:
  /// Parses "a i64 not null, b decimal(12,2)". Names fold to lower case unless in double quotes.
  /// Errors: invalid_argument, with the place in words.
  static TableResult<Schema> parse(std::string_view text);
  /// Errors: invalid_argument, with the column in words.
  static TableResult<Schema> make(std::span<const Column> columns);
  static TableResult<Schema> make(std::initializer_list<Column> columns) {
    return make(std::span(columns.begin(), columns.size()));
  }

  [[nodiscard]] const std::vector<Column>& columns() const;
  /// The number of the column of exactly this name.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  [[nodiscard]] std::uint32_t row_bytes() const;
  /// The text that parse() reads.
  [[nodiscard]] std::string to_text() const;

  friend bool operator==(const Schema& a, const Schema& b);

 private:
  friend class client::SchemaImpl;
  explicit Schema(std::shared_ptr<const client::SchemaImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const client::SchemaImpl> impl_;
};

/// Options to create or open a table.
///
/// The rows of an encrypted table are cipher text (AES-128-CTR) in memory; queries decrypt them
/// beside the memory, with a key that travels with each query. There is no integrity: changed
/// cipher text, or a wrong key, yields other rows, and no error. docs/tables.md says what is kept
/// secret from whom.
struct TableOptions {
  /// For create_table(): encrypt the rows.
  bool encrypted = false;
  /// The key of an encrypted table. Without it the table can be described and dropped, but neither
  /// appended to nor queried. It stays in memory as long as the handles opened with it.
  std::optional<TableKey> key{};
  /// Permits queries to send keys to a node over a transport that others could read: any address
  /// but unix: and shm:. Appends and read_rows() send none.
  bool allow_keys_in_clear = false;
  /// For create_table(): as MapOptions::durability. An encrypted table is sync in a store with a
  /// data folder, and `none` is refused, because no slot may ever be issued twice.
  std::optional<Durability> durability{};
};

/// A table at one moment.
struct TableDescription {
  std::string name;
  Schema schema;
  std::uint64_t rows = 0;
  std::uint64_t pages = 0;         ///< of 2 MiB
  std::uint64_t memory_bytes = 0;  ///< pages and their directory
  bool encrypted = false;          ///< its rows are encrypted
  /// Its durability, in results of Store::tables() only; else empty.
  std::optional<Durability> durability{};
};

/// Buffers rows for a table. Rows are checked as they are added, and appended together, all or
/// none.
/// Thread: one at a time.
class RowWriter {
 public:
  RowWriter(RowWriter&&) noexcept;
  RowWriter& operator=(RowWriter&&) noexcept;
  /// Discards rows that were not committed.
  ~RowWriter();

  /// Adds a row of one value for each column, in their order.
  ///
  /// Nothing is rounded, truncated or guessed. Integers go into integer columns with the range,
  /// into decimals, and into doubles that hold them exactly; decimals into decimals with the
  /// digits; doubles into float (rounded to its 24 bits) and double; the others into columns of
  /// their own type. Null goes only into nullable columns.
  ///
  /// Errors: invalid_argument, with the row's number in this writer, the column and the value in
  /// words. The row is not added, and commit() fails too, so a caller may check commit() alone.
  template <class... T>
  requires(sizeof...(T) != 0 && (std::constructible_from<Value, const T&> &&
                                 ...)) TableResult<void> add(const T&... values) {
    const Value row[] = {Value(values)...};
    return add_row(row);
  }
  /// The same for a number of columns known at run time.
  TableResult<void> add_row(std::span<const Value> values);

  /// Number of rows that commit() would append.
  [[nodiscard]] std::size_t size() const;
  /// Most rows that one append may have: what fits a message to a node.
  [[nodiscard]] std::size_t rows_max() const;
  /// Appends the rows, all or none, and returns the number of the first; the writer is then empty.
  /// Without rows: returns the table's number of rows. After an error the rows stay until clear().
  /// Cost: a copy; on a node, one request. For an encrypted table, another copy, which is encrypted
  /// here, and one more request; concurrent appends are serialised.
  /// Errors: that of add(); not_found or dropped (the table is gone), out_of_memory; for an
  /// encrypted table also invalid_argument (opened without its key), busy (another append does not
  /// end), unsupported (no libcrypto), system.
  TableResult<std::uint64_t> commit();
  /// Discards rows and error.
  void clear();
  /// Clears the error: refused rows are left out.
  void leave_out_refused();

 private:
  friend class Table;
  explicit RowWriter(std::unique_ptr<client::RowWriterImpl> impl);
  std::unique_ptr<client::RowWriterImpl> impl_;
};

/// The range of rows to read, and when to stop.
struct ReadOptions {
  std::uint64_t first_row = 0;  ///< by their number in the table
  std::uint64_t rows = ~std::uint64_t{0};
  /// As of QueryOptions.
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  std::stop_token stop{};
};

/// A table. A cheap handle: copies name the same table. After it is dropped, calls return not_found
/// or dropped, even if a new table has its name.
/// Thread: all calls from any number of threads.
class Table {
 public:
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const Schema& schema() const;
  /// Current rows, pages and memory.
  /// Cost: on a node, one request.
  /// Errors: not_found, dropped.
  [[nodiscard]] TableResult<TableDescription> describe() const;
  /// Errors: the same.
  [[nodiscard]] TableResult<std::uint64_t> rows() const;

  [[nodiscard]] RowWriter writer() const;
  /// Reads all rows, or a range of them, with all columns, in their order, without operators beside
  /// the memory. Sees the rows that the table has when it begins; row numbers beyond the end yield
  /// none. Include query.hpp.
  ///
  /// If the store was connected with Access::one_sided, the client READs the node's memory under a
  /// lease; else the node sends chunks. Either way in pieces of at most 256 KiB, four ahead. Rows
  /// of an encrypted table are decrypted here: the key does not travel.
  /// Errors, here or of RowStream::next(): not_found, dropped; for keys, those of
  /// RowWriter::commit() but busy; and see ReadOptions.
  [[nodiscard]] TableResult<RowStream> read_rows() const;
  [[nodiscard]] TableResult<RowStream> read_rows(const ReadOptions& options) const;
  /// A query of this table, initially of all its rows and columns.
  [[nodiscard]] Query query() const;

 private:
  friend class Store;
  friend class Query;
  friend class client::TableImpl;
  explicit Table(std::shared_ptr<client::TableImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<client::TableImpl> impl_;
};

}  // namespace espalier
