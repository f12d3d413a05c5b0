// SPDX-License-Identifier: Apache-2.0
// Parser of a node's answer to one_sided_table.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <string_view>

#include "channel/one_sided/opening_fields.hpp"
#include "espalier/error.hpp"
#include "kinds/table/format/table.hpp"
#include "wire/one_sided.hpp"

namespace espalier::client {

struct TableOpening {
  /// Parses the fields; skips unknown kinds. Errors: corrupt (detail 1: a field is cut or missing).
  static Result<TableOpening> read(std::string_view payload);
  /// The location of this table. Errors: corrupt (2: another table, or no lease; 3: an impossible
  /// location of its header).
  [[nodiscard]] Result<wire::TablePlace> place_of(std::uint32_t table_id) const;

  wire::OfferedRegion region{};
  wire::TablePlace table{};
  wire::LeaseGrant lease{};
};

}  // namespace espalier::client
