// SPDX-License-Identifier: Apache-2.0
// The bytes of an embedding table: header, page list, pages of rows. docs/formats/embedding.md
// draws them.
//
//   header 32 KiB   identity, shape, counts | first 2040 entries of the page list
//   page list       in the header's buffer, or a buffer of 2 MiB of its own once that is full
//   entry           page, sequence
//   page 2 MiB      its header, then as many whole rows as fit
//
// Rules
// E1. EmbeddingHeader::rows is stored with release order after the rows that it counts, their pages
//     and the entries of these. It never falls.
// E2. The sequence of a page is odd while one of its counted rows is replaced, and another even
//     number afterwards. So a reader that finds it even and equal before and after a row, in a page
//     list that is still the header's, has read a whole row.
// E3. Any bytes may be read as a row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "espalier/embedding_types.hpp"
#include "wire/ref.hpp"

namespace espalier::embedding {

inline constexpr std::uint64_t kEmbeddingMagic = 0x424D452052494C45;  // "ELIR EMB", low byte first
inline constexpr std::uint32_t kEmbeddingFormat = 1;

inline constexpr std::uint32_t kDimensionStep = 8;
inline constexpr std::uint32_t kDimensionMax = 1024;

/// The options of a table, in messages and records too.
struct EmbeddingShape {
  std::uint32_t dimension;
  std::uint8_t type;  // EmbeddingType
  std::uint8_t reserved[11];
};
static_assert(sizeof(EmbeddingShape) == 16 && offsetof(EmbeddingShape, type) == 4);
static_assert(std::has_unique_object_representations_v<EmbeddingShape>);

/// Whether a table can have this shape.
[[nodiscard]] constexpr bool is_shape(const EmbeddingShape& shape) {
  const bool dimension = shape.dimension != 0 && shape.dimension <= kDimensionMax &&
                         shape.dimension % kDimensionStep == 0;
  return dimension && shape.type >= static_cast<std::uint8_t>(EmbeddingType::fp32) &&
         shape.type <= static_cast<std::uint8_t>(EmbeddingType::int8) &&
         std::ranges::all_of(shape.reserved, [](std::uint8_t byte) { return byte == 0; });
}
[[nodiscard]] constexpr EmbeddingShape shape_of(const EmbeddingOptions& options) {
  return {options.dimension, static_cast<std::uint8_t>(options.type), {}};
}
/// Requires: is_shape().
[[nodiscard]] constexpr EmbeddingOptions options_of(const EmbeddingShape& shape) {
  return {shape.dimension, static_cast<EmbeddingType>(shape.type)};
}

/// Follows the values of an int8 row.
struct RowScale {
  std::uint16_t scale;  // fp16
  std::uint16_t bias;   // fp16
};
static_assert(sizeof(RowScale) == 4 && std::has_unique_object_representations_v<RowScale>);

[[nodiscard]] constexpr std::uint32_t value_bytes_of(EmbeddingType type) {
  if (type == EmbeddingType::fp32) return 4;
  return type == EmbeddingType::int8 ? 1 : 2;
}
/// Bytes of a row: a multiple of 4, and of 8 for all types but int8.
[[nodiscard]] constexpr std::uint32_t row_bytes_of(EmbeddingType type, std::uint32_t dimension) {
  const auto beside =
      type == EmbeddingType::int8 ? static_cast<std::uint32_t>(sizeof(RowScale)) : 0;
  return dimension * value_bytes_of(type) + beside;
}

/// One for each table, at the front of a buffer of 32 KiB.
struct EmbeddingHeader {
  std::uint32_t table_id;
  std::uint32_t generation;
  std::uint64_t created;     // kNoNode
  std::uint64_t superseded;  // kLive; 0 once the table is dropped
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t row_bytes;
  EmbeddingShape shape;
  std::uint64_t rename;  // number of the rename by which it has its name; 0: its creation

  std::uint64_t rows;         // visible ones
  std::uint64_t pages;        // entries of the page list that were filled; at least those of `rows`
  std::uint64_t list;         // where the page list begins, from the region's base
  std::uint64_t list_buffer;  // Ref of the buffer in which it lies: this one at first
  std::uint64_t count_reserved[4];
};
static_assert(sizeof(EmbeddingHeader) == 128);
static_assert(offsetof(EmbeddingHeader, superseded) == offsetof(wire::BufferHeader, superseded));
static_assert(offsetof(EmbeddingHeader, magic) == 24 && offsetof(EmbeddingHeader, format) == 32);
static_assert(offsetof(EmbeddingHeader, row_bytes) == 36 && offsetof(EmbeddingHeader, shape) == 40);
static_assert(offsetof(EmbeddingHeader, rename) == 56);
static_assert(offsetof(EmbeddingHeader, rows) == 64 && offsetof(EmbeddingHeader, pages) == 72);
static_assert(offsetof(EmbeddingHeader, list) == 80);
static_assert(offsetof(EmbeddingHeader, list_buffer) == 88);
static_assert(std::has_unique_object_representations_v<EmbeddingHeader>);

/// The location of a table, for a client that accesses it by READs alone: a field of the answer to
/// one_sided_embedding (wire/one_sided.hpp).
struct EmbeddingPlace {
  std::uint64_t header_offset;  // of the table's header in the region
  std::uint32_t table_id;
  std::uint32_t generation;  // of that header
  EmbeddingShape shape;
};
static_assert(sizeof(EmbeddingPlace) == 32 && offsetof(EmbeddingPlace, shape) == 16);
static_assert(std::has_unique_object_representations_v<EmbeddingPlace>);

/// An entry of the page list. Page p has entry p.
struct PageEntry {
  std::uint64_t page;      // Ref
  std::uint64_t sequence;  // see E2
};
static_assert(sizeof(PageEntry) == 16 && offsetof(PageEntry, sequence) == 8);
static_assert(std::has_unique_object_representations_v<PageEntry>);

inline constexpr std::size_t kHeaderBytes = 32768;
inline constexpr std::size_t kPageBytes = std::size_t{2} << 20;
inline constexpr std::size_t kFirstListOffset = sizeof(EmbeddingHeader);
inline constexpr std::size_t kFirstListEntries =
    (kHeaderBytes - kFirstListOffset) / sizeof(PageEntry);
/// A page list in a buffer of its own begins with a BufferHeader and 8 bytes of zeros.
inline constexpr std::size_t kListOffset = sizeof(wire::BufferHeader) + 8;
inline constexpr std::size_t kPagesMax = (kPageBytes - kListOffset) / sizeof(PageEntry);
static_assert(kFirstListEntries == 2040 && kPagesMax == 131070);

struct PageHeader {
  std::uint32_t table_id;
  std::uint32_t generation;
  std::uint64_t created;     // kNoNode
  std::uint64_t superseded;  // kLive
  std::uint64_t page;        // its number in the table
  std::uint64_t first_row;
  std::uint32_t row_bytes;
  std::uint32_t reserved;
  std::uint64_t tail_reserved[2];
};
static_assert(sizeof(PageHeader) == 64);
static_assert(offsetof(PageHeader, superseded) == offsetof(wire::BufferHeader, superseded));
static_assert(offsetof(PageHeader, page) == 24 && offsetof(PageHeader, first_row) == 32);
static_assert(offsetof(PageHeader, row_bytes) == 40);
static_assert(std::has_unique_object_representations_v<PageHeader>);

[[nodiscard]] constexpr std::uint32_t rows_per_page(std::uint32_t row_bytes) {
  return static_cast<std::uint32_t>((kPageBytes - sizeof(PageHeader)) / row_bytes);
}
/// Limit on rows of a table: ids are of 32 bits.
inline constexpr std::uint64_t kRowsMax = (std::uint64_t{1} << 32) - 1;

/// A reduction of a table's rows; precedes the vector, offsets, ids and weights that it counts,
/// consecutive, 4 bytes each.
struct ReduceShape {
  std::uint8_t reduction;  // Reduction
  std::uint8_t reserved[3];
  std::uint32_t vector;  // floats of it: as many as the dimension, or none
  std::uint32_t bags;    // offsets
  std::uint32_t ids;
  std::uint32_t weights;   // as many as ids, or none
  std::uint32_t grouping;  // by which ids are numbered, or 0
};
static_assert(sizeof(ReduceShape) == 24 && offsetof(ReduceShape, vector) == 4);
static_assert(offsetof(ReduceShape, bags) == 8 && offsetof(ReduceShape, ids) == 12);
static_assert(offsetof(ReduceShape, weights) == 16 && offsetof(ReduceShape, grouping) == 20);
static_assert(std::has_unique_object_representations_v<ReduceShape>);

/// A reduction of several tables; precedes a TableShape for each; then, table by table, the vector,
/// offsets, ids and weights, 4 bytes each.
struct TablesShape {
  std::uint8_t reduction;  // Reduction
  std::uint8_t reserved[3];
  std::uint32_t tables;
};
static_assert(sizeof(TablesShape) == 8 && offsetof(TablesShape, tables) == 4);
static_assert(std::has_unique_object_representations_v<TablesShape>);
/// One of the tables; members as of ReduceShape.
struct TableShape {
  std::uint32_t table;  // its number; 0 for the first one, which the header names
  std::uint32_t vector;
  std::uint32_t bags;
  std::uint32_t ids;
  std::uint32_t weights;
  std::uint32_t grouping;

  /// Of its data behind the shapes.
  [[nodiscard]] constexpr std::uint64_t bytes() const {
    return 4 * (std::uint64_t{vector} + bags + ids + weights);
  }
};
static_assert(sizeof(TableShape) == 24 && offsetof(TableShape, grouping) == 20);
static_assert(std::has_unique_object_representations_v<TableShape>);
/// Limit on tables of one request.
inline constexpr std::uint32_t kTablesMax = 128;

/// Groups of rows; precedes the ids of their rows, 4 bytes each, and their sizes, a byte each.
struct GroupsShape {
  std::uint32_t groups;
  std::uint32_t rows;
};
static_assert(sizeof(GroupsShape) == 8 && offsetof(GroupsShape, rows) == 4);

/// Limits on a node's answer to one request, and on the rows of one append.
inline constexpr std::uint32_t kResultBytesMax = 256 << 10;
inline constexpr std::uint32_t kAppendBytesMax = 1 << 20;
/// Limit on the ids that one request has renumbered, in one turn of the node.
inline constexpr std::uint32_t kRenumberBytesMax = 16 << 10;

/// Statistics of one table, each exact, but not of one instant.
struct EmbeddingNumbers {
  std::uint64_t rows;
  std::uint64_t pages;
  std::uint64_t memory_bytes;
  std::uint64_t reductions;     // bags that were reduced
  std::uint64_t rows_gathered;  // for them
  std::uint64_t rows_replaced;
  std::uint64_t rereads;  // steps that met a replacement, and were repeated
  std::uint64_t groups;
  std::uint64_t grouped_rows;
  std::uint64_t group_bytes;      // of the memory: sums of groups, and the numbering of their rows
  std::uint64_t sums_gathered;    // of the rows gathered
  std::uint64_t rows_saved;       // rows that were not read, because sums replaced them
  std::uint64_t grouping_groups;  // of a grouping in progress; 0: none
  std::uint64_t grouping_computed;  // of these, groups whose sums are there
};
static_assert(sizeof(EmbeddingNumbers) == 112);
static_assert(std::has_unique_object_representations_v<EmbeddingNumbers>);

}  // namespace espalier::embedding
