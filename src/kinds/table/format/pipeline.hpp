// SPDX-License-Identifier: Apache-2.0
// Message of a pipeline of operators over the rows of one table. docs/formats/pipeline.md draws it.
//
//   header | operators | constants | nodes | items | heap, with zeros up to a multiple of 8
//
// Expressions are trees of nodes: a node names its children by their index, which is lower than its
// own, and each node is the child of one node, or the root of one operator or item. So bounded
// number and depth bound the work. Constants are separate from the nodes, so that a prepared
// pipeline can run again with others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::wire {

inline constexpr std::uint32_t kPipelineMagic = 0x4950'5345;  // "ESPI"
inline constexpr std::uint16_t kPipelineVersion = 1;

inline constexpr std::uint32_t kPipelineBytesMax = 64 * 1024;
inline constexpr std::uint32_t kPipelineOperatorsMax = 64;
inline constexpr std::uint32_t kPipelineNodesMax = 256;
inline constexpr std::uint32_t kPipelineDepthMax = 32;
inline constexpr std::uint32_t kPipelineConstantsMax = 2048;
inline constexpr std::uint32_t kPipelineItemsMax = 256;

struct PipelineHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t reserved;
  std::uint32_t bytes;  // of the message, a multiple of 8
  std::uint16_t operators;
  std::uint16_t constants;
  std::uint16_t nodes;
  std::uint16_t items;
  std::uint32_t heap_bytes;  // without the zeros behind it
  std::uint64_t reserved2;
};
static_assert(sizeof(PipelineHeader) == 32 && offsetof(PipelineHeader, bytes) == 8 &&
              offsetof(PipelineHeader, heap_bytes) == 20 &&
              std::has_unique_object_representations_v<PipelineHeader>);

/// A run of a prepared pipeline: this header, then all its constants anew, then the heap of their
/// texts, with zeros up to a multiple of 8.
struct LoadedRun {
  std::uint32_t magic;      // kLoadedRunMagic
  std::uint16_t version;    // kPipelineVersion
  std::uint16_t constants;  // as many as the pipeline has, each of its type
  std::uint32_t bytes;      // of all
  std::uint32_t heap_bytes;
  std::uint64_t pipeline;  // its number, which pipeline_load answered
};
inline constexpr std::uint32_t kLoadedRunMagic = 0x5250'5345;  // "ESPR"
static_assert(sizeof(LoadedRun) == 24 && offsetof(LoadedRun, pipeline) == 16 &&
              std::has_unique_object_representations_v<LoadedRun>);

/// Operators appear in the order of these numbers; filters may be repeated.
enum class OperatorKind : std::uint16_t {
  invalid = 0,
  decrypt = 1,             // the table's rows, with the key that comes with the run
  scan = 2,                // argument: Addressing
  filter = 3,              // argument: root of a condition; rows go on for which it is true
  regular_expression = 4,  // in no message: a filter's condition has them, ExpressionKind::matches
  project = 5,             // items, each without aggregate
  distinct = 6,            // of what is projected
  group_by = 7,            // items; argument: so many of them, the first, are keys
  limit = 8,               // argument: rows
  encrypt = 9,             // the result's rows, likewise
  pack = 10,               // rows of the result's schema
};

/// Which bytes of rows are read.
enum class Addressing : std::uint64_t {
  automatic = 0,  // smart if less than 0.7 of a row's lines are wanted
  full = 1,
  smart = 2,  // only lines that hold wanted columns
};

struct OperatorHeader {
  std::uint16_t kind;  // OperatorKind
  std::uint16_t reserved;
  std::uint16_t first_item;
  std::uint16_t items;
  std::uint64_t argument;
};
static_assert(sizeof(OperatorHeader) == 16 && offsetof(OperatorHeader, argument) == 8 &&
              std::has_unique_object_representations_v<OperatorHeader>);

/// Types of expressions. Integer columns of any width are integers.
enum class ValueKind : std::uint8_t {
  invalid = 0,
  boolean = 1,
  integer = 2,    // 64 bits
  decimal = 3,    // 18 digits, with a scale
  real = 4,       // IEEE 754, 64 bits
  date = 5,       // days since 1970-01-01
  timestamp = 6,  // microseconds since 1970-01-01 00:00 UTC
  text = 7,
};

/// A constant. Text lies in the heap.
struct ConstantValue {
  std::uint8_t kind;   // ValueKind
  std::uint8_t scale;  // decimals; 0 for others
  std::uint8_t null;   // 1: null, of this kind; value and bytes are 0
  std::uint8_t reserved;
  std::uint32_t bytes;  // text: so many, at most kConstantTextBytesMax
  std::uint64_t value;  // text: offset in the heap; boolean: 0 or 1; real: its bits
};
inline constexpr std::uint32_t kConstantTextBytesMax = 1024;
static_assert(sizeof(ConstantValue) == 16 && offsetof(ConstantValue, value) == 8 &&
              std::has_unique_object_representations_v<ConstantValue>);

enum class ExpressionKind : std::uint8_t {
  invalid = 0,
  column = 1,    // a: column of the table
  constant = 2,  // a: constant
  add = 3,       // a + b, and so on
  subtract = 4,
  multiply = 5,
  equal = 6,
  not_equal = 7,
  less = 8,
  less_equal = 9,
  greater = 10,
  greater_equal = 11,
  logical_and = 12,
  logical_or = 13,
  logical_not = 14,  // of a
  is_null = 15,      // of a; never null itself
  between = 16,      // b <= a and a <= c
  in = 17,           // a is one of the constants b, b + 1, ... b + c - 1
  like = 18,         // a like the constant b, without escape character
  matches = 19,      // the constant b, a regular expression, matches in a; c: MatchFlags
};

/// How a regular expression is meant.
inline constexpr std::uint16_t kMatchIgnoresCase = 1;
inline constexpr std::uint16_t kMatchFlags = kMatchIgnoresCase;  // all that there are
inline constexpr std::uint32_t kPipelineRegexesMax = 16;

struct ExpressionNode {
  std::uint8_t kind;  // ExpressionKind
  std::uint8_t reserved;
  std::uint16_t a;
  std::uint16_t b;
  std::uint16_t c;
};
static_assert(sizeof(ExpressionNode) == 8 &&
              std::has_unique_object_representations_v<ExpressionNode>);

enum class Aggregate : std::uint8_t {
  none = 0,
  count_rows = 1,  // node: kNoExpression
  count = 2,       // of values that are not null
  min = 3,
  max = 4,
  sum = 5,
  avg = 6,
};
inline constexpr std::uint16_t kNoExpression = 0xFFFF;

/// A column of the result.
struct PipelineItem {
  std::uint16_t node;      // root of its expression
  std::uint8_t aggregate;  // Aggregate
  std::uint8_t reserved;
  std::uint32_t reserved2;
};
static_assert(sizeof(PipelineItem) == 8 && std::has_unique_object_representations_v<PipelineItem>);

}  // namespace espalier::wire
