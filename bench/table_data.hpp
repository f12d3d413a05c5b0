// SPDX-License-Identifier: Apache-2.0
// Tables and queries of `espalier-bench table`, the same for all targets.
//
// Thread: building, one at a time; reading, any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "bench/report.hpp"
#include "catalog/catalog.hpp"
#include "kinds/table/ctr_cipher.hpp"
#include "kinds/table/pipeline.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/table.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/region.hpp"

namespace espalier::bench {

/// Columns of a table of the benchmark, 8 bytes each and never null; further columns are noise.
enum TableColumn : std::size_t {
  kThousandColumn,  ///< random, below 1000: for filters
  kValueColumn,     ///< below 1000: for sums
  kKeysColumn,      ///< the first of those for groups
};
/// Numbers of different values in the columns from kKeysColumn on, at random.
inline constexpr std::uint64_t kGroupCounts[] = {16, 1024, 65536, 1 << 20};

/// The kinds of rows in tables of the benchmark.
enum class TableKind : std::uint8_t {
  words,      ///< the columns above
  encrypted,  ///< the same, encrypted
  texts,      ///< one column of random letters and digits; half match each pattern
};
struct TableSpec {
  std::uint64_t bytes = 0;  ///< about
  std::uint32_t row_bytes = 64;
  TableKind kind = TableKind::words;
  std::uint64_t seed = 1;

  friend bool operator==(const TableSpec&, const TableSpec&) = default;
};

inline constexpr std::uint32_t kTextBytes = 256;
struct TextPattern {
  const char* name;
  const char* regex;
  const char* hit;  ///< the matching part, in half of the texts
};
inline constexpr TextPattern kPatterns[] = {
    {"literal", "Strasse", "Strasse"},
    {"street", "(Strasse|Str\\.).*(8[0-9]{4})", "Str. 80123"},
    {"currency", "[0-9]+(USD|EUR|GBP)", "17EUR"},
    {"letters", "[A-Za-z]{3}:[0-9]{4}", "abc:1234"},
};

/// A table in this process, on pages like those of a node.
class TableData {
 public:
  /// Errors: throws std::runtime_error.
  explicit TableData(const TableSpec& spec);
  /// Caches the last one, since consecutive points use the same.
  static std::shared_ptr<const TableData> of(const TableSpec& spec);
  static void forget();

  [[nodiscard]] const TableSpec& spec() const { return spec_; }
  [[nodiscard]] const std::shared_ptr<table::Table>& table() const { return table_; }
  [[nodiscard]] std::uint64_t rows() const { return table_->rows(); }
  [[nodiscard]] std::uint64_t bytes() const { return rows() * table_->schema().row_bytes(); }
  /// The user's key of encrypted tables, and the cipher of this one; null for other kinds.
  static table::KeyBytes key() { return {}; }
  [[nodiscard]] std::optional<table::CtrCipher> new_cipher() const;

 private:
  void append(std::span<std::byte> rows, std::optional<table::CtrCipher>& cipher);

  TableSpec spec_;
  memory::Region region_;
  memory::BufferPool pool_;
  catalog::Catalog catalog_;
  std::shared_ptr<table::Table> table_;

  static std::shared_ptr<const TableData> kept_;
};

/// One query, and the fields of its point.
struct TableQuery {
  std::string workload;
  Json parameters;
  std::uint32_t row_bytes = 64;
  TableKind kind = TableKind::words;
  std::function<void(table::PipelineBuilder&)> build;  ///< all but the decryption
  std::size_t key_column = 0;   ///< of group and distinct, for hand-written peers
  const char* regex = nullptr;  ///< the same

  [[nodiscard]] TableSpec spec(std::uint64_t bytes, std::uint64_t seed) const {
    return {bytes, row_bytes, kind, seed};
  }
};

/// Its pipeline, as a message. It decrypts rows of an encrypted table, unless they are already
/// `plain`. Errors: throws std::runtime_error.
[[nodiscard]] std::vector<std::byte> message_of(const TableQuery& query, bool plain = false);
/// The same, checked for a table and ready to run. Errors: throws std::runtime_error.
[[nodiscard]] table::Pipeline pipeline_of(std::span<const std::byte> message,
                                          const table::Schema& schema);

/// A sum over rows of whole words that does not depend on their order.
[[nodiscard]] std::uint64_t hash_of_rows(std::span<const std::byte> rows, std::size_t row_bytes);

/// Time of a pass, by the clock and by this thread's processor: on a machine with other work, the
/// second still shows the cost of the work.
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

/// The time in which one core reads, or copies, the table's own pages in order.
[[nodiscard]] PassTime read_pass(const TableData& data);
[[nodiscard]] PassTime copy_pass(const TableData& data);

}  // namespace espalier::bench
