// SPDX-License-Identifier: Apache-2.0
// Queries of one table, built in C++ and run beside the memory: only the answer travels.
//
//   auto rows = sales.query()
//                   .where(col("price") > 1.99_dec && !col("shop").is_null())
//                   .group_by({"shop"}, {count(), sum(col("price")).as("total")})
//                   .run();
//   if (!rows) ...
//   for (const Row row : *rows) use(row.get<std::string_view>(0), row.get<Decimal>(2));
//
// Expressions have SQL's semantics: three-valued logic, exact integers and decimals; an overflow is
// an error (docs/tables.md).
//
// An invalid query (a missing column, a comparison of text with a number) fails with
// invalid_argument, in words, when it is run or explained, before a row is read.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "espalier/expression.hpp"
#include "espalier/table.hpp"

namespace espalier {

namespace client {
class RowsImpl;
class RowStreamImpl;
class PreparedImpl;
struct QueryParts;
}  // namespace client

/// A column of an answer.
struct AnswerColumn {
  std::string name;
  ValueKind kind = ValueKind::null;
  std::uint8_t scale = 0;  ///< of decimals
  bool nullable = true;    ///< false: none of its values is null

  friend bool operator==(const AnswerColumn&, const AnswerColumn&) = default;
};

/// One row of an answer. Points into its Rows.
class Row {
 public:
  /// Types that get() takes, each only for columns of its kind (see AnswerColumn): bool,
  /// std::int64_t, Decimal, double, Date, Timestamp, std::string_view, std::string.
  template <class T>
  static constexpr bool kReadable =
      std::same_as<T, bool> || std::same_as<T, std::int64_t> || std::same_as<T, Decimal> ||
      std::same_as<T, double> || std::same_as<T, Date> || std::same_as<T, Timestamp> ||
      std::same_as<T, std::string_view> || std::same_as<T, std::string>;

  /// Requires, here and below: the column exists.
  [[nodiscard]] bool is_null(std::size_t column) const { return value(column).is_null(); }
  /// A column's value. Requires: the column is of T's kind, and the value is not null.
  template <class T>
  requires kReadable<T>
  [[nodiscard]] T get(std::size_t column) const {
    const std::optional<T> held = find<T>(column);
    if (!held) misused(column);
    return *held;
  }
  /// The same for a nullable value: get<std::optional<Date>>(2).
  template <class T>
  requires kReadable<typename T::value_type> &&
      std::same_as<T, std::optional<typename T::value_type>>
  [[nodiscard]] T get(std::size_t column) const { return find<typename T::value_type>(column); }
  /// A value of any kind; its text lives as long as the Rows.
  [[nodiscard]] Value value(std::size_t column) const;

 private:
  friend class Rows;
  Row(const client::RowsImpl* rows, std::size_t row) : rows_(rows), row_(row) {}
  template <class T>
  [[nodiscard]] std::optional<T> find(std::size_t column) const {
    const Value held = value(column);
    if (held.is_null()) return std::nullopt;
    using Held = std::conditional_t<std::same_as<T, std::string>, std::string_view, T>;
    const Held* const typed = held.get_if<Held>();
    if (typed == nullptr) misused(column);
    return T(*typed);
  }
  /// Ends the program: the types do not match.
  [[noreturn]] void misused(std::size_t column) const;
  const client::RowsImpl* rows_;
  std::size_t row_;
};

/// Rows of an answer, with their columns. A value: copies share the rows. Thread: const calls from
/// any.
class Rows {
 public:
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] const std::vector<AnswerColumn>& columns() const;
  /// The number of the first column of this name.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// Requires: i < size(). The row is valid while one of the copies lives.
  [[nodiscard]] Row row(std::size_t i) const;
  [[nodiscard]] Row operator[](std::size_t i) const { return row(i); }

  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = Row;
    Iterator() = default;
    Iterator(const client::RowsImpl* rows, std::size_t at) : rows_(rows), at_(at) {}
    Row operator*() const { return {rows_, at_}; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    const client::RowsImpl* rows_ = nullptr;
    std::size_t at_ = 0;
  };
  [[nodiscard]] Iterator begin() const { return {impl_.get(), 0}; }
  [[nodiscard]] Iterator end() const { return {impl_.get(), size()}; }

 private:
  friend class client::RowsImpl;
  explicit Rows(std::shared_ptr<const client::RowsImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const client::RowsImpl> impl_;
};

struct QueryOptions {
  /// Past it the query ends with system, ETIMEDOUT.
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  /// On a stop request, from any thread, the query ends with system, ECANCELED.
  std::stop_token stop{};
  /// Encrypts the answer's rows on the way from a node, under a key derived from this one for this
  /// run; they are decrypted here. In a store of this process nothing travels.
  std::optional<TableKey> result_key{};
};

/// Statistics of a query beside the memory.
struct QueryStats {
  std::uint64_t rows_read = 0;
  std::uint64_t rows_passed = 0;  ///< passed all conditions
  std::uint64_t rows_sent = 0;    ///< by the place that ran the query
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t flushes = 0;       ///< times that partial groups were sent for lack of memory
  std::uint64_t busy_ns = 0;       ///< processor time
  std::uint64_t memory_bytes = 0;  ///< peak: registers and groups
};

/// A running query, whose rows are pulled in pieces. It runs ahead of its reader by no more than
/// the rings hold, so a query of any size needs little memory here. Exception: groups and distinct
/// rows arrive at the end, once all are known.
///
/// It holds a connection of its own. A node ends a query with busy after 30 seconds in which no row
/// is pulled.
/// Thread: one at a time; its stop token from any.
class RowStream {
 public:
  RowStream(RowStream&&) noexcept;
  RowStream& operator=(RowStream&&) noexcept;
  /// Cancels the query if it has not ended. Cost: on a node, waits for its answer, a second at
  /// most.
  ~RowStream();

  [[nodiscard]] const std::vector<AnswerColumn>& columns() const;
  /// The next rows, at least one; nullopt: the end.
  /// Errors: dropped (the table, meanwhile), invalid_argument (an evaluation failed, e.g.
  /// overflowed), busy, and see QueryOptions. Rows before an error are no complete answer. After an
  /// error or the end, further calls return the same.
  TableResult<std::optional<Rows>> next();
  /// Ends the query: next() returns no more rows.
  void cancel();
  /// Complete only after the end.
  [[nodiscard]] QueryStats stats() const;

 private:
  friend class Query;
  friend class Table;
  friend class PreparedQuery;
  explicit RowStream(std::unique_ptr<client::RowStreamImpl> impl);
  std::unique_ptr<client::RowStreamImpl> impl_;
};

/// A value for a parameter of a prepared query (expression.hpp).
struct Argument {
  std::string_view name;
  Value value;  ///< of the parameter's type; for a decimal also integers and decimals that fit
};

/// A query kept beside its table, where the memory is: a run sends only its number and the
/// constants. A value: copies name the same one, which is dropped with the last. It belongs to the
/// sessions in which it runs, at most 256 in each, and is loaded again in a new session.
/// Thread: const calls from any.
class PreparedQuery {
 public:
  /// As Query::run(). Parameters without an argument keep their default.
  /// Errors: besides, invalid_argument (no such parameter, or a value of another type),
  /// too_many_participants (the session has 256 already).
  [[nodiscard]] TableResult<Rows> run(std::initializer_list<Argument> arguments = {},
                                      const QueryOptions& options = {}) const {
    return run(std::span(arguments.begin(), arguments.size()), options);
  }
  [[nodiscard]] TableResult<Rows> run(std::span<const Argument> arguments,
                                      const QueryOptions& options = {}) const;
  /// As Query::stream().
  [[nodiscard]] TableResult<RowStream> stream(std::initializer_list<Argument> arguments = {},
                                              const QueryOptions& options = {}) const {
    return stream(std::span(arguments.begin(), arguments.size()), options);
  }
  [[nodiscard]] TableResult<RowStream> stream(std::span<const Argument> arguments,
                                              const QueryOptions& options = {}) const;
  [[nodiscard]] const std::vector<AnswerColumn>& columns() const;

 private:
  friend class client::PreparedImpl;
  explicit PreparedQuery(std::shared_ptr<const client::PreparedImpl> impl)
      : impl_(std::move(impl)) {}
  std::shared_ptr<const client::PreparedImpl> impl_;
};

/// How results of a prepared query travel.
enum class ResultForm : std::uint8_t {
  in_clear,
  encrypted,  ///< each run takes a key, QueryOptions::result_key
};

/// A query of one table. A value: calls change it and return it; it may be run any number of times.
/// Thread: const calls from any.
///
/// It sees the rows that the table has when it begins. Rows come in the order of the table; groups
/// and distinct rows in the order of first occurrence.
class Query {
 public:
  /// Keeps rows for which the condition is true, neither false nor null. Several conditions are
  /// combined by AND; a later one is evaluated only for rows that passed, and so are the operands
  /// of `a && b`.
  Query& where(Expr condition);
  /// The columns of the answer; by default those of the table. Not with group_by().
  Query& project(std::vector<Output> columns);
  /// Drops duplicate rows. Groups are distinct by themselves.
  Query& distinct();
  /// One row for each group of equal keys: the keys, then the aggregates. Without keys, one row for
  /// all rows; without both, the query is refused.
  Query& group_by(std::vector<Output> keys, std::vector<Aggregate> aggregates);
  /// The same without keys.
  Query& aggregate(std::vector<Aggregate> aggregates) {
    return group_by({}, std::move(aggregates));
  }
  /// At most so many rows of the answer.
  Query& limit(std::uint64_t rows);

  /// Runs the query to its end.
  /// Cost: memory for the whole answer; on a node, one request. In a store of this process it runs
  /// on the calling thread.
  /// Errors: as RowStream::next(), and not_found; unsupported (Expr::matches in a store opened
  /// without StoreOptions::regexes; no libcrypto); for keys: invalid_argument (the table was opened
  /// without its key, or keys would travel in clear: TableOptions), system (no memory may be
  /// locked).
  [[nodiscard]] TableResult<Rows> run(const QueryOptions& options = {}) const;
  /// Starts the query. Errors: the same.
  [[nodiscard]] TableResult<RowStream> stream(const QueryOptions& options = {}) const;
  /// Checks the query now and keeps it beside the table, for repeated runs. No key is kept with it.
  /// Cost: on a node, a request.
  /// Errors: as run(); too_many_participants (see PreparedQuery).
  [[nodiscard]] TableResult<PreparedQuery> prepare(ResultForm form = ResultForm::in_clear) const;
  /// The plan beside the memory, a line for each operator.
  [[nodiscard]] TableResult<std::vector<std::string>> explain() const;

 private:
  friend class Table;
  friend class client::TableImpl;
  explicit Query(std::shared_ptr<client::TableImpl> table) : table_(std::move(table)) {}
  [[nodiscard]] client::QueryParts parts() const;

  std::shared_ptr<client::TableImpl> table_;
  std::vector<Expr> conditions_;
  std::vector<Output> outputs_;
  std::vector<Aggregate> aggregates_;
  bool projected_ = false;
  bool grouped_ = false;
  bool distinct_ = false;
  std::optional<std::uint64_t> limit_;
};

}  // namespace espalier
