// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/table_opening.hpp"

namespace espalier::client {

Result<TableOpening> TableOpening::read(std::string_view payload) {
  TableOpening opening;
  bool has_table = false;
  const auto opened = read_opening(payload, [&](const OpeningField& field) -> Result<void> {
    if (field.kind == wire::FieldKind::table) {
      has_table |= take_field(opening.table, field.content);
    }
    return {};
  });
  if (!opened) return std::unexpected(opened.error());
  if (!has_table) return fail(Code::corrupt, kOpeningCut);
  opening.region = opened->region;
  opening.lease = opened->lease;
  return opening;
}

Result<wire::TablePlace> TableOpening::place_of(std::uint32_t table_id) const {
  if (table.table_id != table_id || table_id == 0 || lease.lease == 0) {
    return fail(Code::corrupt, kOpeningNotAsked);
  }
  const std::uint64_t end = region.bytes;
  const bool inside = end >= wire::kTableHeaderBytes &&
                      table.header_offset <= end - wire::kTableHeaderBytes &&
                      table.header_offset % wire::kBlockBytes == 0;
  if (!inside) return fail(Code::corrupt, kOpeningOutside);
  return table;
}

}  // namespace espalier::client
