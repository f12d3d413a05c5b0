// SPDX-License-Identifier: Apache-2.0
// The tables of one store, by name and by id.
//
// A table is shared: a drop takes away its name and its id, and its memory goes back when the last
// who holds it lets go. No reader waits for another, and none reads a table of the same name that
// was made later.
//
// Invariants
// 1. An id names one table for ever; it is not used again when that table is dropped.
// 2. A table found here is not marked as dropped at the moment of finding; it may be right after.
//
// Thread: any. The lock is not held while the memory of a table is given back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "table/table.hpp"

namespace espalier::table {

class TableCatalog {
 public:
  static constexpr std::size_t kNameBytesMax = 255;

  /// The pool must outlive the catalog, and every table that was got from it.
  explicit TableCatalog(memory::BufferPool& pool) : pool_(pool) {}
  TableCatalog(const TableCatalog&) = delete;
  TableCatalog& operator=(const TableCatalog&) = delete;

  /// Makes an empty table. Errors: already_exists, invalid_argument (a name of none or too many
  /// bytes), out_of_memory, unsupported (all ids are used up).
  Result<std::shared_ptr<Table>> create(std::string_view name, Schema schema,
                                        TableOptions options = {});

  /// Errors: not_found.
  [[nodiscard]] Result<std::shared_ptr<Table>> open(std::string_view name) const;

  /// The table with this id; null: there is none, or no longer.
  [[nodiscard]] std::shared_ptr<Table> find(std::uint32_t id) const;

  /// Takes a table away from all who look for it, and marks it as dropped for those who have it.
  /// Returns it: its memory goes back when the last holder lets go. Errors: not_found.
  Result<std::shared_ptr<Table>> drop(std::string_view name);

  /// Ascending.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  memory::BufferPool& pool_;
  mutable std::mutex mutex_;  // guards all below
  std::map<std::string, std::shared_ptr<Table>, std::less<>> by_name_;
  std::unordered_map<std::uint32_t, std::shared_ptr<Table>> by_id_;
  std::uint32_t next_number_ = 1;  // wire::kTableIdBit once all are used up
};

}  // namespace espalier::table
