// SPDX-License-Identifier: Apache-2.0
// Queries of one table, built in C++ and run beside the memory: what travels is the answer.
//
//   auto rows = sales.query()
//                   .where(col("price") > 1.99_dec && !col("shop").is_null())
//                   .group_by({"shop"}, {count(), sum(col("price")).as("total")})
//                   .run();
//   if (!rows) ...
//   for (const Row row : *rows) use(row.get<std::string_view>(0), row.get<Decimal>(2));
//
// What expressions mean is SQL's: three-valued logic, exact integers and decimals, an overflow is
// an error. docs/tables.md tells all of it.
//
// A query that cannot be, for a column that is not there say or a text that is compared with a
// number, is refused when it is run or explained, before a row is read: invalid_argument, in words.
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
  /// Which types get() takes, each for columns of its kind alone (see AnswerColumn): bool,
  /// std::int64_t, Decimal, double, Date, Timestamp, std::string_view, std::string.
  template <class T>
  static constexpr bool kReadable =
      std::same_as<T, bool> || std::same_as<T, std::int64_t> || std::same_as<T, Decimal> ||
      std::same_as<T, double> || std::same_as<T, Date> || std::same_as<T, Timestamp> ||
      std::same_as<T, std::string_view> || std::same_as<T, std::string>;

  /// Requires: there is such a column. Holds for all calls.
  [[nodiscard]] bool is_null(std::size_t column) const { return value(column).is_null(); }
  /// A column's value. Requires: the column is of T's kind, and the value is not null.
  template <class T>
  requires kReadable<T>
  [[nodiscard]] T get(std::size_t column) const {
    const std::optional<T> held = find<T>(column);
    if (!held) misused(column);
    return *held;
  }
  /// The same of a value that may be null: get<std::optional<Date>>(2).
  template <class T>
  requires kReadable<typename T::value_type> &&
      std::same_as<T, std::optional<typename T::value_type>>
  [[nodiscard]] T get(std::size_t column) const { return find<typename T::value_type>(column); }
  /// Of any kind; text is there as long as the Rows.
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
  /// Ends the program: it is written wrongly.
  [[noreturn]] void misused(std::size_t column) const;
  const client::RowsImpl* rows_;
  std::size_t row_;
};

/// Rows of an answer, with their columns. A value: copies share what is behind it. Thread: const
/// calls from any.
class Rows {
 public:
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] const std::vector<AnswerColumn>& columns() const;
  /// The number of the first column of this name.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// Requires: i < size(). The row is there as long as one of the copies.
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
  /// Then the query ends with system, ETIMEDOUT.
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  /// When a stop is asked for, from whatever thread, it ends with system, ECANCELED.
  std::stop_token stop{};
  /// The answer's rows travel from a node as cipher text, under a key that is derived of this one
  /// for this run, and are decrypted here. In a store of this process nothing travels.
  std::optional<TableKey> result_key{};
};

/// What a query did beside the memory.
struct QueryStats {
  std::uint64_t rows_read = 0;
  std::uint64_t rows_passed = 0;  ///< all conditions
  std::uint64_t rows_sent = 0;    ///< by the place that ran it
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t flushes = 0;       ///< how often groups did not fit, and were sent as parts
  std::uint64_t busy_ns = 0;       ///< that it was worked on
  std::uint64_t memory_bytes = 0;  ///< that it needed at most: registers and groups
};

/// A query that runs, whose rows are pulled in pieces; so it runs ahead of its reader by no more
/// than the rings hold, and a query of any size needs little memory here. Groups and distinct rows
/// are an exception: they come at the end, once all are known.
///
/// It holds a connection of its own. A node ends a query whose rows nobody pulls for 30 seconds,
/// with busy. Thread: one at a time; its stop token from any.
class RowStream {
 public:
  RowStream(RowStream&&) noexcept;
  RowStream& operator=(RowStream&&) noexcept;
  /// Cancels what has not ended. Cost: on a node, waits for its answer, a second at most.
  ~RowStream();

  [[nodiscard]] const std::vector<AnswerColumn>& columns() const;
  /// The next rows, at least one; nothing: these were all. Errors: dropped (the table, meanwhile),
  /// invalid_argument (a value cannot be worked out, e.g. overflows), busy, and see QueryOptions.
  /// What came before an error is no whole answer. After it, or the end, it comes again.
  TableResult<std::optional<Rows>> next();
  /// Ends it: next() gives nothing more.
  void cancel();
  /// Whole only after the end.
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
  Value value;  ///< of the parameter's type; integers and decimals for any decimal that holds them
};

/// A query that is kept beside its table, where the memory is: a run sends its number and the
/// constants. A value: copies name the same one, which is dropped with the last. It belongs to the
/// sessions that it is run in, at most 256 to each, and is loaded again where there is another.
/// Thread: const calls from any.
class PreparedQuery {
 public:
  /// As Query::run(). Parameters that are not named have the values that they were written with.
  /// Errors: besides, invalid_argument (there is no such parameter, or the value has another type),
  /// too_many_participants (the session keeps 256 already).
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
  encrypted,  ///< each run brings a key, QueryOptions::result_key
};

/// A query of one table. A value: calls change it and return it; it may be run as often as one
/// likes. Thread: const calls from any.
///
/// It sees the rows that the table has when it begins. Rows come in the order of the table, groups
/// and distinct rows in that in which each is first met.
class Query {
 public:
  /// Keeps rows for which the condition is true, neither false nor null. Several: all must be, and
  /// a later one is worked out only for rows that passed; so it is with the parts of `a && b`.
  Query& where(Expr condition);
  /// What the answer's columns are; without it, those of the table. Not beside group_by().
  Query& project(std::vector<Output> columns);
  /// Leaves out rows that were there before. Groups are distinct by themselves.
  Query& distinct();
  /// One row for each group of equal keys: the keys, then the aggregates. Without keys, one row for
  /// all; without either, refused.
  Query& group_by(std::vector<Output> keys, std::vector<Aggregate> aggregates);
  /// The same without keys.
  Query& aggregate(std::vector<Aggregate> aggregates) {
    return group_by({}, std::move(aggregates));
  }
  /// At most so many rows of the answer.
  Query& limit(std::uint64_t rows);

  /// Runs it to its end. Cost: memory for the whole answer; on a node, one request. In a store of
  /// this process it runs on this thread. Errors: as RowStream::next(), and not_found; unsupported
  /// (Expr::matches in a store that was opened without StoreOptions::regexes; no libcrypto); of
  /// keys: invalid_argument (the table was opened without its own, or keys would travel in clear:
  /// TableOptions), system (no memory may be locked).
  [[nodiscard]] TableResult<Rows> run(const QueryOptions& options = {}) const;
  /// Begins to run it. Errors: the same.
  [[nodiscard]] TableResult<RowStream> stream(const QueryOptions& options = {}) const;
  /// Has it checked now and kept beside the table, to be run again and again. Cost: on a node, a
  /// request. No key is kept with it. Errors: as run(); too_many_participants (see PreparedQuery).
  [[nodiscard]] TableResult<PreparedQuery> prepare(ResultForm form = ResultForm::in_clear) const;
  /// What would run beside the memory, a line for each operator.
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
