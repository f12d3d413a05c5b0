// SPDX-License-Identifier: Apache-2.0
// Relational tables in a store, this process's own or a node's: rows of columns with types, to
// which rows are appended, and which queries read (query.hpp). A table is dropped whole; single
// rows are neither changed nor taken out.
//
//   auto schema = Schema::parse("id i64 not null, shop char(3), price decimal(8,2), day date");
//   auto sales = store.create_table("sales", *schema);
//   RowWriter rows = sales->writer();
//   rows.add(1, "ab", 1.50_dec, Date(std::chrono::year(2024) / 1 / 31));
//   rows.add(2, std::nullopt, 4.00_dec, std::nullopt);
//   auto first = rows.commit();
//
// Errors of all calls on a node: connection_lost; of an append without an answer nobody knows
// whether it was done. unsupported: the node is an older one and has no tables. And everywhere of
// calls that need the store: forked (another process made the handle, docs/fork.md).
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

/// What a column holds. docs/tables.md has the values of each.
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

/// A type, with what it is limited to.
struct ColumnType {
  ColumnKind kind = ColumnKind::i64;
  std::uint8_t precision = 0;  ///< decimal: digits in all, at most 18
  std::uint8_t scale = 0;      ///< decimal: digits behind the point
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

  /// As it stands in a schema's text, e.g. "decimal(12,2)".
  [[nodiscard]] std::string to_text() const;
  friend bool operator==(const ColumnType&, const ColumnType&) = default;
};

struct Column {
  std::string name;  ///< 1 to 63 bytes
  ColumnType type;
  bool nullable = true;

  friend bool operator==(const Column&, const Column&) = default;
};

/// 1 to 256 columns with names that differ, whose rows have at most 32 KiB. A value: copies share
/// what is behind it. Thread: const calls from any.
class Schema {
 public:
  /// Reads "a i64 not null, b decimal(12,2)": names fold to lower case unless they stand in double
  /// quotes. Errors: invalid_argument, with the place in words.
  static TableResult<Schema> parse(std::string_view text);
  /// Errors: invalid_argument, with the column in words.
  static TableResult<Schema> make(std::span<const Column> columns);
  static TableResult<Schema> make(std::initializer_list<Column> columns) {
    return make(std::span(columns.begin(), columns.size()));
  }

  [[nodiscard]] const std::vector<Column>& columns() const;
  /// The number of the column of this very name.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  [[nodiscard]] std::uint32_t row_bytes() const;
  /// parse() reads it back.
  [[nodiscard]] std::string to_text() const;

  friend bool operator==(const Schema& a, const Schema& b);

 private:
  friend class client::SchemaImpl;
  explicit Schema(std::shared_ptr<const client::SchemaImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const client::SchemaImpl> impl_;
};

/// How a table is made, or opened.
///
/// The rows of an encrypted table are cipher text (AES-128-CTR) wherever the table lies; queries
/// decrypt them beside the memory, with a key that comes with each. There is no integrity: cipher
/// text that is changed, and a wrong key, give other rows, and no error. docs/tables.md tells what
/// is kept secret from whom.
struct TableOptions {
  /// Of create_table(): its rows are to be encrypted.
  bool encrypted = false;
  /// Of an encrypted table: without it the table can be described and dropped, but neither appended
  /// to nor queried. It stays in memory as long as the handles that were opened with it.
  std::optional<TableKey> key{};
  /// Queries of a node may send keys also where others on the way could read them: by any address
  /// but unix: and shm:. Appends and read_rows() send none.
  bool allow_keys_in_clear = false;
  /// Of create_table(): as MapOptions::durability. An encrypted one is sync in a store with a data
  /// folder, and refused with `none`, for no slot may ever be given twice.
  std::optional<Durability> durability{};
};

/// A table as it was at one moment.
struct TableDescription {
  std::string name;
  Schema schema;
  std::uint64_t rows = 0;
  std::uint64_t pages = 0;         ///< of 2 MiB
  std::uint64_t memory_bytes = 0;  ///< pages, and what leads to them
  bool encrypted = false;          ///< its rows are
  /// What a crash may lose of it, as Store::tables() tells; nothing: it is not told.
  std::optional<Durability> durability{};
};

/// Rows on their way into a table: added one by one, checked as they are added, and appended
/// together, all or none. Thread: one at a time.
class RowWriter {
 public:
  RowWriter(RowWriter&&) noexcept;
  RowWriter& operator=(RowWriter&&) noexcept;
  /// Rows that were not committed are gone.
  ~RowWriter();

  /// Adds a row of one value for each column, in their order.
  ///
  /// Nothing is rounded, cut or guessed: integers go into columns of integers that have the range,
  /// into decimals, and into doubles that hold them exactly; decimals into decimals that have the
  /// digits; doubles into float (rounded to its 24 bits) and double; the others into columns of
  /// their own type. Null, only into columns that are not `not null`.
  ///
  /// Errors: invalid_argument, with the row's number here, the column and the value in words; the
  /// row is not added then, and commit() fails too, so a caller may look at that alone.
  template <class... T>
  requires(sizeof...(T) != 0 && (std::constructible_from<Value, const T&> &&
                                 ...)) TableResult<void> add(const T&... values) {
    const Value row[] = {Value(values)...};
    return add_row(row);
  }
  /// The same for a number of columns that is not known before.
  TableResult<void> add_row(std::span<const Value> values);

  /// Rows that commit() would append.
  [[nodiscard]] std::size_t size() const;
  /// How many rows one append may have: what a message to a node holds.
  [[nodiscard]] std::size_t rows_max() const;
  /// Appends the rows, all or none, and returns the number of the first; the writer is then empty.
  /// Of no rows: the table's number of rows.
  /// Cost: a copy; on a node, one request. Of an encrypted table, another copy, which is encrypted
  /// here, and a request more; appends of several clients wait for each other. Errors: that of
  /// add(); not_found or dropped (the table is gone), out_of_memory; of an encrypted table also
  /// invalid_argument (it was opened without its key), busy (another append does not end),
  /// unsupported (there is no libcrypto), system. The rows stay until clear().
  TableResult<std::uint64_t> commit();
  /// Forgets rows and error.
  void clear();
  /// Forgets the error: rows that were refused are left out.
  void leave_out_refused();

 private:
  friend class Table;
  explicit RowWriter(std::unique_ptr<client::RowWriterImpl> impl);
  std::unique_ptr<client::RowWriterImpl> impl_;
};

/// Which rows are read, and until when.
struct ReadOptions {
  std::uint64_t first_row = 0;  ///< by their number in the table
  std::uint64_t rows = ~std::uint64_t{0};
  /// As of QueryOptions.
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  std::stop_token stop{};
};

/// A table. A cheap handle: copies name the same table. When it is dropped, calls say not_found or
/// dropped, also where another one of its name is made.
/// Thread: all calls from any number of threads.
class Table {
 public:
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const Schema& schema() const;
  /// Rows, pages and memory as they are now. Cost: on a node, one request.
  /// Errors: not_found, dropped.
  [[nodiscard]] TableResult<TableDescription> describe() const;
  /// Errors: the same.
  [[nodiscard]] TableResult<std::uint64_t> rows() const;

  [[nodiscard]] RowWriter writer() const;
  /// Reads all rows, or a range of them, as they lie, with all columns: what a query of everything
  /// gives, but nothing runs beside the memory. They are those that the table has when it begins,
  /// in their order; of numbers behind its end there are none. Include query.hpp.
  ///
  /// Where the store was connected with Access::one_sided, rows come by READs of the node's memory
  /// under a lease, else from the node by chunks; a piece of 256 KiB or less at a time, four ahead.
  /// Rows of an encrypted table are decrypted here: the key does not travel.
  /// Errors, here or of RowStream::next(): not_found, dropped; of keys, those of
  /// RowWriter::commit() but busy; and see ReadOptions.
  [[nodiscard]] TableResult<RowStream> read_rows() const;
  [[nodiscard]] TableResult<RowStream> read_rows(const ReadOptions& options) const;
  /// A query of this table, so far of all its rows and columns.
  [[nodiscard]] Query query() const;

 private:
  friend class Store;
  friend class Query;
  friend class client::TableImpl;
  explicit Table(std::shared_ptr<client::TableImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<client::TableImpl> impl_;
};

}  // namespace espalier
