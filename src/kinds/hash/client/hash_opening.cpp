// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/client/hash_opening.hpp"

namespace espalier::client {

Result<HashOpening> HashOpening::read(std::string_view payload) {
  HashOpening opening;
  bool has_map = false;
  const auto opened = read_opening(payload, [&](const OpeningField& field) -> Result<void> {
    if (field.kind == wire::FieldKind::hash) has_map |= take_field(opening.map, field.content);
    return {};
  });
  if (!opened) return std::unexpected(opened.error());
  if (!has_map) return fail(Code::corrupt, kOpeningCut);
  opening.region = opened->region;
  opening.lease = opened->lease;
  return opening;
}

Result<place::HashTarget> HashOpening::target_of(std::uint32_t map_id) const {
  auto target = place::HashTarget::read(map.header, map.header_offset, region.bytes);
  if (!target) return target;
  if (target->id != map_id || lease.lease == 0) return fail(Code::corrupt, kOpeningNotAsked);
  return target;
}

}  // namespace espalier::client
