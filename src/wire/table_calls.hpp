// SPDX-License-Identifier: Apache-2.0
// What travels with the offloads on tables, beside schemas (wire/table.hpp), pipelines
// (wire/pipeline.hpp) and rows. docs/formats/table_calls.md draws it.
#pragma once

#include <cstdint>
#include <type_traits>

namespace espalier::wire {

/// What is known of a table: the answer to table_open and table_create, its schema behind it; in
/// object_list it follows the ObjectEntry, likewise.
struct TableFacts {
  std::uint64_t rows;
  std::uint64_t pages;
  std::uint64_t memory_bytes;
  std::uint32_t row_bytes;
  std::uint32_t schema_bytes;
};
static_assert(sizeof(TableFacts) == 32 && std::has_unique_object_representations_v<TableFacts>);

/// What a query did beside the memory: the payload of its answer.
struct QueryNumbers {
  std::uint64_t rows_read;
  std::uint64_t rows_passed;   // all filters
  std::uint64_t rows_sent;     // in chunks
  std::uint64_t bytes_read;    // beside the memory
  std::uint64_t bytes_sent;    // of rows
  std::uint64_t flushes;       // how often groups did not fit, and were sent as partial ones
  std::uint64_t busy_ns;       // that helpers worked on it
  std::uint64_t memory_bytes;  // that it needed: registers and groups
};
static_assert(sizeof(QueryNumbers) == 64 && std::has_unique_object_representations_v<QueryNumbers>);

}  // namespace espalier::wire
