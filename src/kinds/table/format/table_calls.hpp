// SPDX-License-Identifier: Apache-2.0
// Message formats of the calls on tables, besides schemas (kinds/table/format/table.hpp), pipelines
// (kinds/table/format/pipeline.hpp) and rows. docs/formats/table_calls.md draws them.
#pragma once

#include <cstdint>
#include <type_traits>

namespace espalier::wire {

/// Facts about a table: the answer to table_open and table_create, followed by its schema; in
/// object_list they follow the ObjectEntry, likewise.
struct TableFacts {
  std::uint64_t rows;
  std::uint64_t pages;
  std::uint64_t memory_bytes;
  std::uint32_t row_bytes;
  std::uint32_t schema_bytes;
};
static_assert(sizeof(TableFacts) == 32 && std::has_unique_object_representations_v<TableFacts>);

/// Follows the schema if the table is encrypted.
struct CipherFacts {
  std::uint32_t cipher;  // TableCipher
  std::uint32_t reserved;
  std::uint8_t salt[32];
};
static_assert(sizeof(CipherFacts) == 40 && std::has_unique_object_representations_v<CipherFacts>);

/// Flags of table_create, its argument.
inline constexpr std::uint32_t kCreateEncrypted = 1;
/// Above it stands its durability (wire/object.hpp).
inline constexpr std::uint32_t kCreateDurabilityShift = 1;

/// Slots reserved by table_reserve: an array of these, in the order of the rows.
struct ReservedSlots {
  std::uint64_t cipher_page;
  std::uint32_t first_slot;  // row n of the page lies at RowPageHeader and n * row_bytes
  std::uint32_t slots;
};
static_assert(sizeof(ReservedSlots) == 16 &&
              std::has_unique_object_representations_v<ReservedSlots>);

/// The keys of one run: the key of table_query. Fields without their flag are 0.
struct RunKeys {
  std::uint32_t flags;  // kTableKey, kResultKey
  std::uint32_t reserved;
  std::uint8_t table_key[16];    // the user's, of the operator decrypt
  std::uint8_t result_key[16];   // likewise, of encrypt
  std::uint8_t result_salt[32];  // drawn for this run
};
inline constexpr std::uint32_t kTableKey = 1;
inline constexpr std::uint32_t kResultKey = 2;
static_assert(sizeof(RunKeys) == 72 && std::has_unique_object_representations_v<RunKeys>);

/// The payload of table_read: rows of the table by number; numbers beyond its end yield none.
struct RowsWanted {
  std::uint64_t first_row;
  std::uint64_t rows;
};
static_assert(sizeof(RowsWanted) == 16 && std::has_unique_object_representations_v<RowsWanted>);

/// Precedes the rows of a chunk of table_read, which lie in one page.
struct RowsPlace {
  std::uint64_t first_row;    // the number of the first
  std::uint64_t cipher_page;  // where that lies, in counter blocks, if the table is encrypted
  std::uint64_t page_offset;  // in bytes from the page's begin
  std::uint64_t reserved;
};
static_assert(sizeof(RowsPlace) == 32 && std::has_unique_object_representations_v<RowsPlace>);

/// Statistics of a query beside the memory: the payload of its answer.
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
