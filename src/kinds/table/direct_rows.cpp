// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/direct_rows.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;

/// Whether every pattern of a column's eight bytes is a distinct value.
bool is_plain_word(const Column& column) {
  return !column.nullable &&
         (column.type.kind == ColumnType::i64 || column.type.kind == ColumnType::decimal ||
          column.type.kind == ColumnType::timestamp);
}

}  // namespace

std::optional<DirectSums> DirectSums::of(const BatchProgram& program,
                                         const std::vector<AggregateSlot>& slots) {
  const Pipeline& pipeline = program.pipeline();
  if (pipeline.key_columns() != 1) return std::nullopt;
  DirectSums direct;
  for (std::size_t i = 0; i < pipeline.items.size(); ++i) {
    if (pipeline.items[i].aggregate != Aggregate::none) continue;
    const Column* const column = program.sources()[i].column;
    if (column == nullptr || !is_plain_word(*column)) return std::nullopt;
    direct.key_from = column->offset;
  }
  for (const AggregateSlot& slot : slots) {
    if (slot.aggregate == Aggregate::count_rows) {
      direct.counts.push_back(slot.offset);
      continue;
    }
    const Column* const column = program.sources()[slot.item].column;
    if (column == nullptr || !is_plain_word(*column)) return std::nullopt;
    switch (slot.aggregate) {
      case Aggregate::count: direct.counts.push_back(slot.offset); break;
      case Aggregate::avg: direct.counts.push_back(slot.count_offset); [[fallthrough]];
      case Aggregate::sum:
        direct.sums.push_back({column->offset, slot.offset, slot.high_offset});
        break;
      default: return std::nullopt;
    }
  }
  return direct;
}

}  // namespace espalier::table
