// SPDX-License-Identifier: Apache-2.0
// For tests: tables that are recorded, and others that the records are applied to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "catalog/apply_record.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "kinds/table/apply_redo.hpp"
#include "kinds/table/redo_record.hpp"
#include "kinds/table/snapshot.hpp"
#include "kinds/table/testing/random_table.hpp"
#include "kinds/table/testing/table_checks.hpp"

namespace espalier::table {

/// A page as it lies in a table.
struct PageImage {
  std::uint64_t first_row = 0;
  std::uint64_t cipher_page = 0;
  std::string rows;

  friend bool operator==(const PageImage&, const PageImage&) = default;
};

inline std::vector<PageImage> pages_of(const std::shared_ptr<Table>& table) {
  const TableSnapshot snapshot(table);
  std::vector<PageImage> pages;
  for (std::uint64_t i = 0; i < snapshot.pages(); ++i) {
    const RowSpan span = snapshot.page(i).value();
    pages.push_back({span.first_row,
                     table->encrypted() ? span.cipher_page : 0,
                     {reinterpret_cast<const char*>(span.rows), span.bytes()}});
  }
  return pages;
}

struct RedoTables {
  explicit RedoTables(std::uint64_t bytes_max = std::uint64_t{256} << 20)
      : store(bytes_max), other(bytes_max) {
    store.tables.catalog.record_to(&sink);
  }

  /// Applies a record to the other store, whatever it is of.
  Result<void> apply(std::string_view record) {
    return catalog::apply_record(
        other.tables.catalog, record,
        [this](const catalog::CreatedObject& created) {
          return restore_table(other.tables.catalog, other.pool, created);
        },
        [this](const catalog::RedoHead& head, std::string_view own) {
          return catalog::apply_to<Table>(other.tables.catalog, head.object,
                                          [&](Table& table) { return apply_redo(table, own); });
        });
  }
  /// Whether all records could be applied, in their order.
  bool apply_all() {
    bool good = true;
    for (const std::string_view record : sink.records()) good = apply(record) && good;
    return good;
  }
  [[nodiscard]] std::shared_ptr<Table> of_other(std::uint32_t id) const {
    return other.tables.catalog.find<Table>(id);
  }

  catalog::RecordingSink sink;
  TableStore store;
  TableStore other;
};

/// Whether no row is visible before its record is durable, all are then, and appends go on behind
/// those that are not; also where the page is full.
inline bool rows_are_visible_once_they_are_durable() {
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  TableStore store;
  store.tables.catalog.record_to(&sink);
  const auto table = store.create(append_schema());
  const std::int64_t many = table->schema().rows_per_page() - 1;
  bool good = true;
  std::uint64_t rows = 0;
  for (const std::int64_t count : {many, std::int64_t{3}, std::int64_t{5}}) {
    const auto first = table->append(rows_of_append(table->schema(), 1, count));
    good = good && first && *first == rows && table->rows() == 0;
    rows += static_cast<std::uint64_t>(count);
  }
  good = good && table->append({}) == rows && table->rows() == 0;  // of no rows
  sink.make_durable(1);                                            // it was made
  good = good && table->rows() == 0 && TableSnapshot(table).rows() == 0;
  sink.make_durable(3);
  good = good && table->rows() == rows - 5 && pages_of(table).size() == 2;
  sink.make_durable();
  return good && table->rows() == rows && pages_of(table).size() == 2;
}

/// Whether no row is visible before its record is handed over.
inline bool records_come_before_their_rows() {
  RedoTables tables;
  const auto table = tables.store.create(append_schema());
  bool good = true;
  tables.sink.when_handed_over = [&](std::string_view record) {
    good = good && table->rows() == read_appended(record)->fields.first_row;
  };
  for (std::int64_t i = 0; i < 3; ++i) {
    good = table->append(rows_of_append(table->schema(), i, 5000)).has_value() && good;
  }
  return good && tables.sink.count() == 4;
}

}  // namespace espalier::table
