// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/table_opening.hpp"

namespace espalier::client {

Result<TableOpening> TableOpening::read(std::string_view payload) {
  return read_opening_of(wire::FieldKind::table, &TableOpening::table, payload);
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
