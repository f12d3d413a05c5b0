// SPDX-License-Identifier: Apache-2.0
// Format of a relational table: schema, header, page list, pages of rows. docs/formats/table.md
// draws it.
//
// Rows have one size, a multiple of 8. Columns lie in declared order, each at the next offset that
// its alignment allows; after the last one come the null bits, one for each nullable column in
// declared order, the first in the lowest bit. No offsets are stored: kinds/table/schema.cpp
// computes them.
//
// Rules
// T1. Any byte pattern may be read as a row: readers clamp the length of a text, and take a bool
//     byte other than 0 for true.
// T2. TableHeader::rows is stored with release order after the rows that it counts, their pages and
//     the entries that name these. It never falls.
// T3. An entry of the page list, and what lies in a page below `rows`, never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wire/ref.hpp"

namespace espalier::wire {

inline constexpr std::uint64_t kTableMagic = 0x4C42542052494C45;  // "ELIR TBL", low byte first
inline constexpr std::uint32_t kTableFormat = 1;
inline constexpr std::uint16_t kSchemaFormat = 1;

/// What a column holds. Numbers are little-endian, integers in two's complement.
enum class ColumnType : std::uint8_t {
  invalid = 0,
  i8 = 1,
  i16 = 2,
  i32 = 3,
  i64 = 4,
  f32 = 5,          ///< float: IEEE 754 binary32
  f64 = 6,          ///< double: binary64
  decimal = 7,      ///< i64, a multiple of 10^-scale, of at most `precision` digits
  date = 8,         ///< i32: days since 1970-01-01
  timestamp = 9,    ///< i64: microseconds since 1970-01-01 00:00:00 UTC
  boolean = 10,     ///< one byte: 0 is false
  fixed_char = 11,  ///< char(n): n bytes, blanks behind the text
  text = 12,        ///< text(n): the length in 2 bytes, then n bytes, zeros behind the text
};

inline constexpr std::uint32_t kColumnsMax = 256;
inline constexpr std::uint32_t kColumnNameBytesMax = 63;
inline constexpr std::uint32_t kDecimalDigitsMax = 18;
/// n of char(n) and text(n).
inline constexpr std::uint32_t kTextBytesMax = 1024;
inline constexpr std::uint32_t kRowAlignment = 8;
inline constexpr std::uint32_t kRowBytesMax = 32768;
/// Days and microseconds of 0001-01-01 and 9999-12-31, the limits of dates and timestamps.
inline constexpr std::int32_t kDateMin = -719'162;
inline constexpr std::int32_t kDateMax = 2'932'896;
inline constexpr std::int64_t kMicrosecondsPerDay = 86'400'000'000;
inline constexpr std::int64_t kTimestampMin = kDateMin * kMicrosecondsPerDay;
inline constexpr std::int64_t kTimestampMax = (kDateMax + 1) * kMicrosecondsPerDay - 1;

/// A schema in a table's header and in messages: this, then `columns` descriptors.
struct SchemaHeader {
  std::uint16_t format;   // kSchemaFormat
  std::uint16_t columns;  // 1 to kColumnsMax
  std::uint32_t reserved;
};
static_assert(sizeof(SchemaHeader) == 8);
static_assert(std::has_unique_object_representations_v<SchemaHeader>);

/// One column. Fields that its type does not use are 0.
struct ColumnDescriptor {
  ColumnType type;
  std::uint8_t nullable;   // 1: it has a null bit; 0: not null
  std::uint8_t precision;  // decimal: digits, 1 to 18
  std::uint8_t scale;      // decimal: of these behind the point
  std::uint16_t length;    // char, text: n
  std::uint16_t name_bytes;
  char name[kColumnNameBytesMax + 1];  // zeros behind it
};
static_assert(sizeof(ColumnDescriptor) == 72);
static_assert(offsetof(ColumnDescriptor, length) == 4 && offsetof(ColumnDescriptor, name) == 8);
static_assert(std::has_unique_object_representations_v<ColumnDescriptor>);

inline constexpr std::size_t kSchemaBytesMax =
    sizeof(SchemaHeader) + kColumnsMax * sizeof(ColumnDescriptor);

/// Encryption of the rows of a table. Counter blocks of AES in counter mode are, big-endian,
/// RowPageHeader::cipher_page and the number of the block of 16 bytes in the page, its header
/// included; the key is derived from a user's key and the salt (HKDF, SHA-256).
enum class TableCipher : std::uint32_t { none = 0, aes_128_ctr = 1 };

/// One for each table, at the front of a buffer of 64 KiB; the schema and the directory of the page
/// list lie in the same buffer.
struct TableHeader {
  std::uint32_t table_id;
  std::uint32_t generation;
  std::uint64_t created;     // kNoNode
  std::uint64_t superseded;  // kLive; 0 once the table is dropped
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t row_bytes;
  std::uint32_t schema_bytes;
  std::uint32_t reserved;
  std::uint64_t identity_reserved[2];

  std::uint64_t rows;   // visible ones, of all pages
  std::uint64_t pages;  // entries of the page list that were ever filled; at least those of `rows`
  std::uint64_t count_reserved[6];

  std::uint32_t cipher;  // TableCipher
  std::uint32_t cipher_reserved;
  std::uint8_t salt[32];  // of the table's key: drawn when it is made; 0 without cipher
  std::uint64_t key_reserved[3];
};
static_assert(sizeof(TableHeader) == 192);
static_assert(offsetof(TableHeader, cipher) == 128 && offsetof(TableHeader, salt) == 136);
static_assert(offsetof(TableHeader, superseded) == offsetof(BufferHeader, superseded));
static_assert(offsetof(TableHeader, magic) == 24 && offsetof(TableHeader, row_bytes) == 36);
static_assert(offsetof(TableHeader, rows) == 64 && offsetof(TableHeader, pages) == 72);
static_assert(std::has_unique_object_representations_v<TableHeader>);

inline constexpr std::size_t kTableHeaderBytes = 65536;
inline constexpr std::size_t kTableSchemaOffset = sizeof(TableHeader);
inline constexpr std::size_t kTableDirectoryOffset = 32768;
static_assert(kTableSchemaOffset + kSchemaBytesMax <= kTableDirectoryOffset);

/// The directory has offsets of parts of the page list from the region's base, 0: none. Pages are
/// numbered from 0; page p has entry p % kRowPageListEntries of part p / kRowPageListEntries.
inline constexpr std::size_t kTableDirectoryEntries =
    (kTableHeaderBytes - kTableDirectoryOffset) / 8;
inline constexpr std::size_t kRowPageListBytes = 32768;

/// An entry of the page list. A page holds the visible rows from its `first_row` to that of the
/// next page, if that is visible; all pages but the last one visible may, but need not, be full.
struct RowPageEntry {
  std::uint64_t page;  // Ref
  std::uint64_t first_row;
};
static_assert(sizeof(RowPageEntry) == 16);
static_assert(std::has_unique_object_representations_v<RowPageEntry>);

/// A part of the page list begins with a BufferHeader and 8 bytes of zeros.
inline constexpr std::size_t kRowPageListOffset = sizeof(BufferHeader) + 8;
inline constexpr std::size_t kRowPageListEntries =
    (kRowPageListBytes - kRowPageListOffset) / sizeof(RowPageEntry);
inline constexpr std::size_t kRowPagesMax = kTableDirectoryEntries * kRowPageListEntries;

/// A page of rows is one extent: this header, then as many whole rows as fit.
inline constexpr std::size_t kRowPageBytes = std::size_t{2} << 20;
struct RowPageHeader {
  std::uint32_t table_id;
  std::uint32_t generation;
  std::uint64_t created;     // kNoNode
  std::uint64_t superseded;  // kLive
  std::uint64_t page;        // its number in the table
  std::uint64_t first_row;
  std::uint32_t row_bytes;
  std::uint32_t reserved;
  std::uint64_t cipher_page;  // encrypted tables: its number in counter blocks, unique
  std::uint64_t tail_reserved;
};
static_assert(sizeof(RowPageHeader) == 64);
static_assert(offsetof(RowPageHeader, superseded) == offsetof(BufferHeader, superseded));
static_assert(offsetof(RowPageHeader, page) == 24 && offsetof(RowPageHeader, first_row) == 32);
static_assert(offsetof(RowPageHeader, row_bytes) == 40);
static_assert(offsetof(RowPageHeader, cipher_page) == 48);
static_assert(std::has_unique_object_representations_v<RowPageHeader>);

/// Location of a table, for a client that reads it by READs alone: a field of the answer to
/// one_sided_table (wire/one_sided.hpp).
struct TablePlace {
  std::uint64_t header_offset;  // of the table's header in the region
  std::uint32_t table_id;
  std::uint32_t generation;  // of that header
};
static_assert(sizeof(TablePlace) == 16 && std::has_unique_object_representations_v<TablePlace>);

}  // namespace espalier::wire
